// SPDX-License-Identifier: Apache-2.0
// Checks against the host: ranks, devices, backends, threads and number types.
#include <algorithm>
#include <numeric>

#include "accrue/run/base/counted.h"
#include "accrue/run/cost/model_share.h"
#include "accrue/run/window/inside_windows.h"
#include "accrue/run/window/pipeline_schedule.h"
#include "preflight_checks.h"
#include "window_length.h"

namespace accrue::preflight_detail {

namespace {

/// The largest degree, up to the requested one, that divides the model.
template <typename Fits>
std::int64_t largest_that_fits(std::int64_t degree, const Fits& fits) {
  while (degree > 1 && !fits(degree)) --degree;
  return degree;
}

void check_second_loss(const RunSpec& spec, Findings& findings) {
  if (!has_second_loss(spec.model)) return;
  const auto one_count = [&](std::string_view key, const Text& found, const std::string& off) {
    findings.error(key, "needs a loss of one sum and one count, and model.binary_head adds another", found,
                   "model.binary_head = false, or " + off, off);
  };
  if (spec.evaluate.exactness_every > 0) one_count("evaluate.exactness_every", spec.evaluate.exactness_every, "0");
  if (spec.teaching.bug != Bug::none) one_count("teaching.bug", quoted(spec.teaching.bug), "none");
}

void check_undivided(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.tensor == 1 && spec.parallel.pipeline == 1) return;
  const auto undivided = [&](std::string_view key, const Text& found, const Text& off) {
    findings.error(key, "needs an undivided model: parallel.tensor and parallel.pipeline must be 1", found, off, off);
  };
  if (spec.run.record_weights) undivided("run.record_weights", "true", "false");
  if (spec.evaluate.exactness_every > 0) undivided("evaluate.exactness_every", spec.evaluate.exactness_every, "0");
  if (spec.teaching.bug != Bug::none) undivided("teaching.bug", quoted(spec.teaching.bug), "none");
  // A partial sum has no norm before the ranks' parts are summed.
  if (spec.optimizer.clip_norm > 0.0 && resolve_knobs(spec).clip_stage == ClipStage::every_micro_step)
    undivided("accumulation.clip_stage", quoted(ClipStage::every_micro_step), "in_update");
}

/// Finds settings of a pipeline that this spec does not use.
void check_unused_order(const RunSpec& spec, Findings& findings) {
  const ParallelSpec& parallel = spec.parallel;
  const bool all_forward = parallel.pipeline_order == PipelineOrder::all_forward;
  if (all_forward && parallel.pipeline == 1)
    findings.warn("parallel.pipeline_order", "does nothing without pipeline stages", quoted(parallel.pipeline_order),
                  quoted(PipelineOrder::one_forward_one_backward) + ", or parallel.pipeline above 1",
                  std::string(to_name(PipelineOrder::one_forward_one_backward)));
  if (parallel.pipeline_group && (parallel.virtual_pipeline == 1 || all_forward))
    findings.warn("parallel.pipeline_group",
                  all_forward ? "does nothing where all forwards come first" : "does nothing without several chunks",
                  *parallel.pipeline_group, "nothing", "");
}

/// Checks windows against the groups of the interleaved schedule.
void check_groups(const RunSpec& spec, Findings& findings) {
  const std::int64_t stages = spec.parallel.pipeline, group = spec.parallel.pipeline_group.value_or(stages);
  if (group < stages)
    return findings.error("parallel.pipeline_group",
                          "must be as many micro-steps as there are pipeline stages: the first of them has to come "
                          "through all stages before the next chunk's turn",
                          group, "at least " + std::to_string(stages), stages);
  const std::int64_t steps = steps_of(spec.accumulation, spec.parallel.data);
  const PipelineShape shape{PipelineSchedule::interleaved, stages, steps, spec.parallel.virtual_pipeline, group};
  if (const auto lists = pipeline_schedule(shape); !lists)
    findings.error(
        "accumulation.steps", "does not fit parallel.virtual_pipeline: " + lists.error().message, steps,
        spec.parallel.pipeline_group ? "a multiple of parallel.pipeline_group" : "a multiple of parallel.pipeline",
        steps == spec.accumulation.steps ? Text((steps / group + 1) * group) : Text());
}

void check_split(const RunSpec& spec, Findings& findings) {
  const auto& split = spec.parallel.split_stage;
  if (!split) return;
  if (spec.model.kind != ModelKind::t5)
    findings.error("parallel.split_stage", "is where the decoder of a T5 begins, and this model has none", *split,
                   "nothing; or model.kind = \"t5\"", "");
  else if (spec.parallel.pipeline == 1)
    findings.warn("parallel.split_stage", "does nothing without pipeline stages", *split,
                  "nothing, or parallel.pipeline above 1", "");
}

void check_pipeline(const RunSpec& spec, Findings& findings) {
  const std::int64_t stages = spec.parallel.pipeline, chunks = spec.parallel.virtual_pipeline;
  check_split(spec, findings);
  if (stages == 1) {
    if (chunks > 1) findings.error("parallel.virtual_pipeline", "needs several pipeline stages", chunks, 1, 1);
    return;
  }
  const bool t5 = spec.model.kind == ModelKind::t5;
  if (t5 && chunks > 1) {
    findings.error(
        "parallel.virtual_pipeline",
        "does not fit a T5: its stages are not interleaved, since the decoder reads what the encoder ends with", chunks,
        1, 1);
  } else if (const std::int64_t split = spec.parallel.split_stage.value_or(0); t5 && split >= stages) {
    findings.error("parallel.split_stage", "leaves no stage for the decoder", split,
                   "at most " + std::to_string(stages - 1), stages - 1);
  } else if (const std::string wrong = check_share(spec.model, 1, stages * chunks, split); !wrong.empty()) {
    const std::int64_t possible = largest_that_fits(stages, [&](std::int64_t degree) {
      return check_share(spec.model, 1, degree * chunks, std::min(split, degree - 1)).empty();
    });
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
  if (chunks > 1 && spec.parallel.pipeline_order == PipelineOrder::one_forward_one_backward)
    check_groups(spec, findings);
}

void check_tensor(const RunSpec& spec, Findings& findings) {
  const std::int64_t ranks = spec.parallel.tensor;
  if (ranks == 1) {
    if (spec.parallel.sequence)
      findings.warn("parallel.sequence", "does nothing without tensor-parallel ranks", "true",
                    "false, or parallel.tensor above 1", "false");
    return;
  }
  ModelSpec rounded = spec.model;
  rounded.vocabulary_multiple = std::lcm(spec.model.vocabulary_multiple, ranks);
  if (const std::string wrong = check_share(spec.model, ranks, 1);
      !wrong.empty() && check_share(rounded, ranks, 1).empty()) {
    findings.error("model.vocabulary_multiple", "leaves a vocabulary that the ranks cannot divide: " + wrong,
                   spec.model.vocabulary_multiple, "a multiple of " + std::to_string(ranks),
                   rounded.vocabulary_multiple);
  } else if (!wrong.empty()) {
    const std::int64_t possible =
        largest_that_fits(ranks, [&](std::int64_t degree) { return check_share(spec.model, degree, 1).empty(); });
    findings.error("parallel.tensor", "cannot divide this model: " + wrong, ranks, possible, possible);
  }
  const bool decodes = spec.model.kind == ModelKind::t5;
  for (const auto& [key, positions] :
       {std::pair("model.context", spec.model.context),
        std::pair("model.decoder_context", decodes ? spec.model.tokens_of_decoder() : std::int64_t{0})})
    if (spec.parallel.sequence && positions % ranks != 0)
      findings.error(
          "parallel.sequence",
          std::string("divides the positions of a sequence: ") + key + " must be a multiple of parallel.tensor",
          counted(positions, "position") + ", " + counted(ranks, "rank"), "false", "false");
}

void check_distributed_activations(const RunSpec& spec, Findings& findings) {
  const ParallelSpec& parallel = spec.parallel;
  if (!parallel.distribute_saved_activations) return;
  const auto refuse = [&](std::string message, std::string expected) {
    findings.error("parallel.distribute_saved_activations", std::move(message), "true", std::move(expected), "false");
  };
  if (parallel.recompute != RecomputeKind::full)
    refuse("shares the inputs of recomputed blocks, and no whole block is recomputed",
           "false, or parallel.recompute = \"full\"");
  else if (parallel.tensor == 1)
    refuse("has no tensor-parallel ranks to share with", "false, or parallel.tensor above 1");
  else if (parallel.sequence)
    refuse("is what sequence parallelism does already", "false, or parallel.sequence = false");
}

void check_recomputation(const RunSpec& spec, Findings& findings) {
  const ParallelSpec& parallel = spec.parallel;
  const RecomputeKind kind = parallel.recompute;
  check_distributed_activations(spec, findings);
  if (kind != RecomputeKind::none && !is_transformer(spec.model.kind))
    findings.error("parallel.recompute", "computes blocks of a transformer again, and this model has none",
                   quoted(kind), "\"none\"", "none");
  if (kind != RecomputeKind::full) {
    const ParallelSpec usual;
    const auto unused = [&](std::string_view key, const Text& found, const Text& fix) {
      findings.add(kind == RecomputeKind::none ? Severity::warning : Severity::error, key,
                   "says which blocks are recomputed, and none is as a whole", found, "parallel.recompute = \"full\"",
                   fix);
    };
    if (parallel.recompute_method != usual.recompute_method)
      unused("parallel.recompute_method", quoted(parallel.recompute_method),
             std::string(to_name(usual.recompute_method)));
    if (parallel.recompute_layers != usual.recompute_layers)
      unused("parallel.recompute_layers", parallel.recompute_layers, usual.recompute_layers);
    return;
  }
  const std::int64_t parts = parallel.pipeline * parallel.virtual_pipeline;
  std::int64_t blocks = std::max<std::int64_t>(spec.model.layers / parts, 1);
  if (const std::int64_t split = split_part(spec.model, parts, parallel.split_stage.value_or(0));
      split > 0 && split < parts)
    blocks = std::max<std::int64_t>(
        std::max(spec.model.layers / split, spec.model.blocks_of_decoder() / (parts - split)), 1);
  else if (spec.model.kind == ModelKind::t5)
    blocks = std::max(blocks, spec.model.blocks_of_decoder());
  if (is_transformer(spec.model.kind) && parallel.recompute_layers > blocks)
    findings.error("parallel.recompute_layers", parts == 1 ? "is more than the model has" : "is more than a part has",
                   counted(parallel.recompute_layers, "block"), "at most " + std::to_string(blocks), blocks);
}

void check_zero(const RunSpec& spec, Findings& findings) {
  if (spec.parallel.zero == 0) {
    if (spec.parallel.overlap_param_gather)
      findings.warn("parallel.overlap_param_gather",
                    "does nothing without parallel.zero: every rank updates all of its "
                    "parameters",
                    "true", "false, or parallel.zero 1", "false");
    return;
  }
  const auto unsharded = [&](std::string_view key, const Text& found, const Text& off) {
    findings.error(key, "needs the whole gradient on every rank: parallel.zero must be 0", found, off, off);
  };
  if (spec.evaluate.exactness_every > 0) unsharded("evaluate.exactness_every", spec.evaluate.exactness_every, "0");
  if (spec.teaching.bug != Bug::none) unsharded("teaching.bug", quoted(spec.teaching.bug), "none");
  const AccumulationKnobs knobs = resolve_knobs(spec);
  if (knobs.reduce_when != ReduceWhen::boundary)
    unsharded("accumulation.reduce_when", quoted(knobs.reduce_when), "boundary");
  if (spec.optimizer.clip_norm > 0.0 && knobs.clip_stage == ClipStage::every_micro_step)
    unsharded("accumulation.clip_stage", quoted(knobs.clip_stage), "in_update");
  if (spec.parallel.data == 1)
    findings.warn("parallel.zero", "does nothing without data-parallel ranks", "parallel.zero = 1",
                  "parallel.zero = 0, or parallel.data above 1", "0");
}

void check_random_init(const RunSpec& spec, Findings& findings) {
  if (!spec.parallel.data_parallel_random_init || (spec.parallel.data > 1 && spec.model.dropout > 0.0)) return;
  const bool alone = spec.parallel.data == 1;
  findings.warn("parallel.data_parallel_random_init",
                alone ? "does nothing without data-parallel ranks" : "does nothing without dropout", "true",
                alone ? "false, or parallel.data above 1" : "false, or model.dropout above 0", "false");
}

/// parallel.data for which the ranks suffice; none if one replica needs more.
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
  // A host that was never probed has no known backends.
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
  check_unused_order(spec, findings);
  check_pipeline(spec, findings);
  check_undivided(spec, findings);
  check_second_loss(spec, findings);
  check_recomputation(spec, findings);
  check_zero(spec, findings);
  check_random_init(spec, findings);
  check_device(spec, host, findings);
  check_backend(spec, host, findings);
  check_threads(spec, host, findings);
  check_dtype(spec, host, findings);
}

}  // namespace accrue::preflight_detail
