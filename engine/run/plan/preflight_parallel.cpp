// SPDX-License-Identifier: Apache-2.0
// Checks against the host: ranks, devices, backends, threads and number types.
#include <algorithm>

#include "accrue/run/counted.h"
#include "accrue/run/inside_windows.h"
#include "preflight_checks.h"

namespace accrue::preflight_detail {

namespace {

// Degrees that the format has and this version does not run.
void check_degrees(const RunSpec& spec, Findings& findings) {
  const ParallelSpec& parallel = spec.parallel;
  const auto only = [&](std::string_view key, std::int64_t degree, std::int64_t available) {
    if (degree != available) findings.error(key, "is not available in this version", degree, available, available);
  };
  only("parallel.tensor", parallel.tensor, 1);
  only("parallel.pipeline", parallel.pipeline, 1);
  only("parallel.virtual_pipeline", parallel.virtual_pipeline, 1);
  only("parallel.zero", parallel.zero, 0);
  if (parallel.sequence)
    findings.error("parallel.sequence", "is not available in this version", "true", "false", "false");
  if (stops_inside_windows(spec)) return;
  for (const auto& [key, every] : {std::pair("checkpoint.every_micro_steps", spec.checkpoint.every_micro_steps),
                                   std::pair("evaluate.every_micro_steps", spec.evaluate.every_micro_steps)})
    if (every > 0) findings.note(key, "waits for the end of a window, since micro-steps overlap in a pipeline");
}

void check_device(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  const bool cuda = spec.launch.device == DeviceKind::cuda;
  const auto devices = static_cast<std::int64_t>(host.cuda_devices.size());
  if (cuda && devices == 0)
    findings.error("launch.device",
                   "this host has no CUDA device" + (host.cuda_error.empty() ? "" : ": " + host.cuda_error), "\"cuda\"",
                   "\"cpu\"", "cpu");
  else if (cuda && world_of(spec) > devices)
    findings.error("parallel.data", "there are more ranks than CUDA devices", counted(world_of(spec), "rank"),
                   "at most " + std::to_string(devices), devices);
}

void check_backend(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  const bool cuda = spec.launch.device == DeviceKind::cuda;
  const BackendKind backend = spec.parallel.backend;
  const auto refuse = [&](const char* message, const char* expected) {
    findings.error("parallel.backend", message, quoted(backend), expected, "auto");
  };
  if (backend == BackendKind::nccl && !cuda)
    refuse("exchanges CUDA tensors only", "\"auto\", or launch.device = \"cuda\"");
  if (backend == BackendKind::shm && cuda) refuse("exchanges CPU tensors only", "\"auto\", or launch.device = \"cpu\"");
  // A host that was never probed says nothing of its backends.
  const bool probed = !host.torch_version.empty();
  const bool needs = backend == BackendKind::gloo || (backend == BackendKind::nccl && cuda);
  if (probed && needs && std::ranges::find(host.backends, to_name(backend)) == host.backends.end())
    refuse("is not in this build of accrue-rank", "\"auto\"");
}

void check_threads(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  if (spec.launch.device != DeviceKind::cpu) return;
  const std::int64_t threads = threads_of(spec, host);
  const std::int64_t ranks = world_of(spec);
  if (threads * ranks <= host.cores) return;
  const std::int64_t share = host.cores / ranks;
  findings.warn(share >= 1 ? "launch.threads_per_rank" : "parallel.data",
                "there are more threads than cores, so ranks wait for each other",
                counted(ranks, "rank") + " x " + counted(threads, "thread"), counted(host.cores, "core"),
                share >= 1 ? share : host.cores);
}

void check_dtype(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  if (spec.launch.device != DeviceKind::cpu) return;
  const Dtype dtype = spec.model.dtype;
  const auto warn = [&](const char* message) {
    findings.warn("model.dtype", message, quoted(dtype), "\"float32\"", "float32");
  };
  if (dtype == Dtype::float16) warn("is far slower than float32 on a CPU");
  if (dtype == Dtype::bfloat16 && !host.avx512_bf16)
    warn("is far slower than float32 on this CPU, which has no AVX512 BF16");
}

}  // namespace

void check_parallel(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  check_degrees(spec, findings);
  check_device(spec, host, findings);
  check_backend(spec, host, findings);
  check_threads(spec, host, findings);
  check_dtype(spec, host, findings);
}

}  // namespace accrue::preflight_detail
