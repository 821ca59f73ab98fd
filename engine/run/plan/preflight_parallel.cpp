// SPDX-License-Identifier: Apache-2.0
// Checks against the host: ranks, devices, backends, threads and number types.
#include <algorithm>

#include "accrue/run/choice_names.h"
#include "accrue/run/model_share.h"
#include "accrue/run/pipeline_schedule.h"
#include "preflight_checks.h"

namespace accrue::preflight_detail {

namespace {

bool offers(const HostFacts& host, std::string_view backend) {
  return std::ranges::find(host.backends, backend) != host.backends.end();
}

/// The largest degree up to the one asked for that divides the model.
template <typename Fits>
std::string largest_that_fits(std::int64_t degree, const Fits& fits) {
  while (degree > 1 && !fits(degree)) --degree;
  return std::to_string(degree);
}

void check_undivided(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.tensor == 1 && spec.parallel.pipeline == 1) return;
  const auto undivided = [&](std::string_view key, const std::string& value, const std::string& off) {
    findings.error(key, "needs an undivided model: parallel.tensor and parallel.pipeline must be 1", value, off)
        .fix_value = off;
  };
  if (spec.run.record_weights) undivided("run.record_weights", "true", "false");
  if (spec.evaluate.exactness_every > 0)
    undivided("evaluate.exactness_every", std::to_string(spec.evaluate.exactness_every), "0");
  if (spec.teaching.bug != Bug::none)
    undivided("teaching.bug", "\"" + std::string(to_name(spec.teaching.bug)) + "\"", "none");
  // A partial sum has no norm before the ranks' parts are summed.
  if (spec.optimizer.clip_norm > 0.0 && resolve_knobs(spec).clip_stage == ClipStage::every_micro_step)
    undivided("accumulation.clip_stage", "\"every_micro_step\"", "in_update");
}

void check_pipeline(const RunSpec& spec, Findings& findings) {
  const std::int64_t stages = spec.parallel.pipeline, chunks = spec.parallel.virtual_pipeline;
  if (stages == 1) {
    if (chunks > 1)
      findings.error("parallel.virtual_pipeline", "needs several pipeline stages", std::to_string(chunks), "1")
          .fix_value = "1";
    return;
  }
  if (const std::string wrong = check_share(spec.model, 1, stages * chunks); !wrong.empty()) {
    const std::string possible = largest_that_fits(
        stages, [&](std::int64_t degree) { return check_share(spec.model, 1, degree * chunks).empty(); });
    findings.error("parallel.pipeline", "cannot divide this model: " + wrong, std::to_string(stages), possible)
        .fix_value = possible;
  }
  if (chunks == 1) return;
  const PipelineShape shape{PipelineSchedule::interleaved, stages, spec.accumulation.steps, chunks};
  if (const auto lists = pipeline_schedule(shape); !lists)
    findings
        .error("accumulation.steps", "does not fit parallel.virtual_pipeline: " + lists.error().message,
               std::to_string(spec.accumulation.steps), "a multiple of parallel.pipeline")
        .fix_value = std::to_string((spec.accumulation.steps / stages + 1) * stages);
}

void check_tensor(const RunSpec& spec, Findings& findings) {
  const std::int64_t ranks = spec.parallel.tensor;
  if (ranks == 1) {
    if (spec.parallel.sequence)
      findings
          .warn("parallel.sequence", "does nothing without tensor-parallel ranks", "true",
                "false, or parallel.tensor above 1")
          .fix_value = "false";
    return;
  }
  if (const std::string wrong = check_share(spec.model, ranks, 1); !wrong.empty()) {
    const std::string possible =
        largest_that_fits(ranks, [&](std::int64_t degree) { return check_share(spec.model, degree, 1).empty(); });
    findings.error("parallel.tensor", "cannot divide this model: " + wrong, std::to_string(ranks), possible).fix_value =
        possible;
  }
  if (spec.parallel.sequence && spec.model.context % ranks != 0)
    findings
        .error("parallel.sequence",
               "divides the positions of a sequence: model.context must be a multiple of parallel.tensor",
               std::to_string(spec.model.context) + " positions, " + std::to_string(ranks) + " ranks", "false")
        .fix_value = "false";
}

void check_zero(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.zero == 0) return;
  const auto unsharded = [&](std::string_view key, const std::string& value, const std::string& off) {
    findings.error(key, "needs the whole gradient on every rank: parallel.zero must be 0", value, off).fix_value = off;
  };
  if (spec.evaluate.exactness_every > 0)
    unsharded("evaluate.exactness_every", std::to_string(spec.evaluate.exactness_every), "0");
  if (spec.teaching.bug != Bug::none)
    unsharded("teaching.bug", "\"" + std::string(to_name(spec.teaching.bug)) + "\"", "none");
  if (const ReduceWhen when = resolve_knobs(spec).reduce_when; when != ReduceWhen::boundary)
    unsharded("accumulation.reduce_when", "\"" + std::string(to_name(when)) + "\"", "boundary");
}

void check_device(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  const bool cuda = spec.launch.device == DeviceKind::cuda;
  if (cuda && host.cuda_devices.empty()) {
    const std::string why = host.cuda_error.empty() ? std::string() : ": " + host.cuda_error;
    findings.error("launch.device", "this host has no CUDA device" + why, "\"cuda\"", "\"cpu\"").fix_value = "cpu";
  } else if (cuda && world_of(spec) > static_cast<std::int64_t>(host.cuda_devices.size())) {
    findings
        .error("parallel.data", "there are more ranks than CUDA devices", std::to_string(world_of(spec)) + " ranks",
               "at most " + std::to_string(host.cuda_devices.size()))
        .fix_value = std::to_string(host.cuda_devices.size());
  }
}

void check_backend(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  const bool cuda = spec.launch.device == DeviceKind::cuda;
  const BackendKind backend = spec.parallel.backend;
  const std::string name = "\"" + std::string(to_name(backend)) + "\"";
  if (backend == BackendKind::nccl && !cuda)
    findings.error("parallel.backend", "exchanges CUDA tensors only", name, "\"auto\", or launch.device = \"cuda\"")
        .fix_value = "auto";
  if (backend == BackendKind::shm && cuda)
    findings.error("parallel.backend", "exchanges CPU tensors only", name, "\"auto\", or launch.device = \"cpu\"")
        .fix_value = "auto";
  // A host that was never probed says nothing of its backends.
  const bool probed = !host.torch_version.empty();
  const bool needs = backend == BackendKind::gloo || (backend == BackendKind::nccl && cuda);
  if (probed && needs && !offers(host, to_name(backend)))
    findings.error("parallel.backend", "is not in this build of accrue-rank", name, "\"auto\"").fix_value = "auto";
}

void check_threads(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  if (spec.launch.device != DeviceKind::cpu) return;
  const std::int64_t threads = threads_of(spec, host);
  const std::int64_t wanted = threads * world_of(spec);
  if (wanted <= host.cores) return;
  Finding& finding =
      findings.warn("launch.threads_per_rank", "there are more threads than cores, so ranks wait for each other",
                    std::to_string(world_of(spec)) + " ranks x " + std::to_string(threads) + " threads",
                    std::to_string(host.cores) + (host.cores == 1 ? " core" : " cores"));
  const std::int64_t share = host.cores / world_of(spec);
  if (share >= 1)
    finding.fix_value = std::to_string(share);
  else
    finding.key = "parallel.data", finding.fix_value = std::to_string(host.cores);
}

void check_dtype(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  if (spec.launch.device != DeviceKind::cpu) return;
  if (spec.model.dtype == Dtype::float16)
    findings.warn("model.dtype", "is far slower than float32 on a CPU", "\"float16\"", "\"float32\"").fix_value =
        "float32";
  if (spec.model.dtype == Dtype::bfloat16 && !host.avx512_bf16)
    findings
        .warn("model.dtype", "is far slower than float32 on this CPU, which has no AVX512 BF16", "\"bfloat16\"",
              "\"float32\"")
        .fix_value = "float32";
}

}  // namespace

void check_parallel(const RunSpec& spec, const HostFacts& host, Findings& findings) {
  check_tensor(spec, findings);
  check_pipeline(spec, findings);
  check_undivided(spec, findings);
  check_zero(spec, findings);
  check_device(spec, host, findings);
  check_backend(spec, host, findings);
  check_threads(spec, host, findings);
  check_dtype(spec, host, findings);
}

}  // namespace accrue::preflight_detail
