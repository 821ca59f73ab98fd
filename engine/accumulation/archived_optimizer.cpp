// SPDX-License-Identifier: Apache-2.0
// The archive belongs to the caller, who trusts the file that it loads. Accrue's own files are never read or written
// this way.
#include "accrue/optim/archived_optimizer.h"

#include <torch/serialize/archive.h>

#include <string>

#include "optimizer_state.h"

namespace accrue {

void ArchivedOptimizer::save(torch::serialize::OutputArchive& archive) const {
  for (const auto& [name, tensor] : optimizer_state(*this)) archive.write(name, tensor);
}

void ArchivedOptimizer::load(torch::serialize::InputArchive& archive) {
  StateDict state;
  for (const std::string& name : archive.keys())
    if (at::Tensor tensor; archive.try_read(name, tensor)) state[name] = tensor;
  load_optimizer_state(*this, state);
}

}  // namespace accrue
