// SPDX-License-Identifier: Apache-2.0
// Checks against the host: ranks, devices, backends, threads and number types.
#include <algorithm>

#include "accrue/run/counted.h"
#include "accrue/run/inside_windows.h"
#include "accrue/run/model_share.h"
#include "accrue/run/pipeline_schedule.h"
#include "plan_derivation.h"
#include "preflight_checks.h"

namespace accrue::preflight_detail {

namespace {

/// The largest degree up to the one asked for that divides the model.
template <typename Fits>
std::int64_t largest_that_fits(std::int64_t degree, const Fits& fits) {
  while (degree > 1 && !fits(degree)) --degree;
  return degree;
}

void check_undivided(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.tensor == 1 && spec.parallel.pipeline == 1) return;
  const auto undivided = [&](std::string_view key, Text found, const Text& off) {
    findings.error(key, "needs an undivided model: parallel.tensor and parallel.pipeline must be 1", std::move(found),
                   off, off);
  };
  if (spec.run.record_weights) undivided("run.record_weights", "true", "false");
  if (spec.evaluate.exactness_every > 0) undivided("evaluate.exactness_every", spec.evaluate.exactness_every, "0");
  if (spec.teaching.bug != Bug::none) undivided("teaching.bug", quoted(spec.teaching.bug), "none");
  // A partial sum has no norm before the ranks' parts are summed.
  if (spec.optimizer.clip_norm > 0.0 && resolve_knobs(spec).clip_stage == ClipStage::every_micro_step)
    undivided("accumulation.clip_stage", quoted(ClipStage::every_micro_step), "in_update");
}

void check_pipeline(const RunSpec& spec, Findings& findings) {
  const std::int64_t stages = spec.parallel.pipeline, chunks = spec.parallel.virtual_pipeline;
  if (stages == 1) {
    if (chunks > 1) findings.error("parallel.virtual_pipeline", "needs several pipeline stages", chunks, 1, 1);
    return;
  }
  if (const std::string wrong = check_share(spec.model, 1, stages * chunks); !wrong.empty()) {
    const std::int64_t possible = largest_that_fits(
        stages, [&](std::int64_t degree) { return check_share(spec.model, 1, degree * chunks).empty(); });
    findings.error("parallel.pipeline", "cannot divide this model: " + wrong, stages, possible, possible);
  }
  for (const auto& [key, every] : {std::pair("checkpoint.every_micro_steps", spec.checkpoint.every_micro_steps),
                                   std::pair("evaluate.every_micro_steps", spec.evaluate.every_micro_steps)})
    if (every > 0 && !stops_inside_windows(spec))
      findings.note(key, "waits for the end of a window, since micro-steps overlap in a pipeline");
  if (resolve_knobs(spec).replays(Replay::zero_before_backward))
    findings.error("accumulation.replay",
                   "\"zero_before_backward\" acts between micro-steps, which overlap in a pipeline",
                   "parallel.pipeline " + std::to_string(stages), "parallel.pipeline 1");
  if (chunks == 1) return;
  const std::int64_t steps = steps_of(spec.accumulation, spec.parallel.data);
  const PipelineShape shape{PipelineSchedule::interleaved, stages, steps, chunks};
  if (const auto lists = pipeline_schedule(shape); !lists)
    findings.error("accumulation.steps", "does not fit parallel.virtual_pipeline: " + lists.error().message, steps,
                   "a multiple of parallel.pipeline",
                   steps == spec.accumulation.steps ? Text((steps / stages + 1) * stages) : Text());
}

void check_tensor(const RunSpec& spec, Findings& findings) {
  const std::int64_t ranks = spec.parallel.tensor;
  if (ranks == 1) {
    if (spec.parallel.sequence)
      findings.warn("parallel.sequence", "does nothing without tensor-parallel ranks", "true",
                    "false, or parallel.tensor above 1", "false");
    return;
  }
  if (const std::string wrong = check_share(spec.model, ranks, 1); !wrong.empty()) {
    const std::int64_t possible =
        largest_that_fits(ranks, [&](std::int64_t degree) { return check_share(spec.model, degree, 1).empty(); });
    findings.error("parallel.tensor", "cannot divide this model: " + wrong, ranks, possible, possible);
  }
  if (spec.parallel.sequence && spec.model.context % ranks != 0)
    findings.error("parallel.sequence",
                   "divides the positions of a sequence: model.context must be a multiple of parallel.tensor",
                   counted(spec.model.context, "position") + ", " + counted(ranks, "rank"), "false", "false");
}

void check_zero(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.zero == 0) return;
  const auto unsharded = [&](std::string_view key, Text found, const Text& off) {
    findings.error(key, "needs the whole gradient on every rank: parallel.zero must be 0", std::move(found), off, off);
  };
  if (spec.evaluate.exactness_every > 0) unsharded("evaluate.exactness_every", spec.evaluate.exactness_every, "0");
  if (spec.teaching.bug != Bug::none) unsharded("teaching.bug", quoted(spec.teaching.bug), "none");
  const AccumulationKnobs knobs = resolve_knobs(spec);
  if (knobs.reduce_when != ReduceWhen::boundary)
    unsharded("accumulation.reduce_when", quoted(knobs.reduce_when), "boundary");
  if (spec.optimizer.clip_norm > 0.0 && knobs.clip_stage == ClipStage::every_micro_step)
    unsharded("accumulation.clip_stage", quoted(knobs.clip_stage), "in_update");
  if (spec.parallel.data == 1)
    findings.warn("parallel.zero", "does nothing without data-parallel ranks", spec.parallel.zero,
                  "0, or parallel.data above 1", "0");
}

/// parallel.data where so many ranks fit; nothing where one replica is more.
Text replicas_in(std::int64_t ranks, const RunSpec& spec) {
  const std::int64_t replicas = ranks / (spec.parallel.tensor * spec.parallel.pipeline);
  return replicas >= 1 ? Text(replicas) : Text();
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
                   "at most " + std::to_string(devices), replicas_in(devices, spec));
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
                share >= 1 ? Text(share) : replicas_in(host.cores, spec));
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
