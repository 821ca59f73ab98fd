// SPDX-License-Identifier: Apache-2.0
#include "rank/probe.h"

#include <torch/headeronly/version.h>

#include <algorithm>

#include "accrue/run/base/version.h"
#include "comm/device_backend.h"
#include "comm/device_loader.h"

namespace accrue {
namespace {

void add_backend(HostFacts& facts, const std::string& name) {
  if (std::find(facts.backends.begin(), facts.backends.end(), name) == facts.backends.end())
    facts.backends.push_back(name);
}

}  // namespace

HostFacts probe_facts() {
  HostFacts facts = local_facts();
  facts.torch_version = TORCH_VERSION;
  facts.accrue_version = version();
  for (const char* name : {"shm", "gloo"}) add_backend(facts, name);
  const auto device = load_device_backend();
  if (!device) {
    facts.cuda_error = device.error().text();
    return facts;
  }
  const int devices = (*device)->device_count();
  for (int i = 0; i < devices; ++i) facts.cuda_devices.push_back((*device)->facts(i));
  if (devices > 0)
    add_backend(facts, "nccl");
  else
    facts.cuda_error = "the CUDA module found no device";
  return facts;
}

}  // namespace accrue
