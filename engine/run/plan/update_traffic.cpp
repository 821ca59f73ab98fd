// SPDX-License-Identifier: Apache-2.0
// Per micro-step:  a block makes four all-reduces of its rows on the tensor axis, or with sequence parallelism four
//                  reduce-scatters and six gathers (two of them again, in backward, of what forward gathered);
//                  embedding and head their own; each stage border a message there and one back.
// Per update:      gradients along data, whole or by shards; what completes divided gradients; the words by which the
//                  ranks agree.
#include "update_traffic.h"

#include <algorithm>

#include "kept_activations.h"
#include "memory_estimate.h"
#include "plan_derivation.h"

namespace accrue {

namespace {

constexpr double word = 8;          ///< numbers that ranks agree by travel as doubles
constexpr double tally_words = 10;  ///< of each rank to all, at a boundary
constexpr double sum_words = 3;     ///< a sum over ranks gathers as many from each

/// One micro-step of a stage's blocks and ends on the tensor axis.
AxisTraffic layers_traffic(const RunSpec& spec, double blocks, bool first, bool last) {
  const MicroBatchShape shape(spec);
  const bool sequence = spec.parallel.sequence;
  const double all = shape.tokens * shape.width * shape.element, own = shape.hidden * shape.element;
  AxisTraffic traffic;
  if (sequence)
    traffic = {.scattered = 4 * blocks * all, .gathered = 6 * blocks * own};
  else
    traffic = {.all_reduced = 4 * blocks * all};
  // What is recomputed makes its forward's exchanges again; an input that ranks share is gathered first.
  const double chunks = number(spec.parallel.virtual_pipeline);
  const RecomputedBlocks again = recomputed_of_chunk(spec.parallel, blocks / chunks);
  if (sequence)
    traffic += {.scattered = 2 * chunks * again.blocks * all, .gathered = 2 * chunks * again.blocks * own};
  else
    traffic.all_reduced += 2 * chunks * again.blocks * all;
  if (again.shared) traffic.gathered += chunks * again.inputs * own / shape.tensor;
  if (first) traffic += {.all_reduced = all, .gathered = sequence ? own : 0};
  if (!last) return traffic;
  // The loss: each row's largest logit and two or three sums.
  traffic.all_reduced += shape.fused_head ? 3 * shape.tokens * shape.element : 4 * shape.tokens * shape.sum;
  if (sequence)
    traffic += {.scattered = all, .gathered = shape.fused_head ? own : 2 * own};
  else
    traffic.all_reduced += all;
  return traffic;
}

AxisTraffic gradient_traffic(const RunSpec& spec, const AccumulationKnobs& knobs, double micro_steps,
                             const StageGradients& gradients) {
  const double element = number(bytes_of_sum(knobs.accumulation_dtype, dtype_bytes(spec.model.dtype)));
  const double bytes = gradients.numel * element;
  if (spec.parallel.zero > 0)
    return {.all_reduced = 4 * gradients.parameters,  // which of them have a gradient
            .scattered = bytes,
            .gathered = gradients.numel / number(spec.parallel.data) * number(dtype_bytes(spec.model.dtype))};
  switch (knobs.reduce_when) {
    case ReduceWhen::boundary:
      return {.all_reduced = bytes};
    case ReduceWhen::every_micro_step:
      return {.all_reduced = bytes * micro_steps};
    case ReduceWhen::never:
      break;
  }
  return {};
}

/// The ranks count a window's items before it where a micro-step divides by them (K6).
bool counts_first(const AccumulationKnobs& knobs, std::int64_t replicas) {
  return counts_items(knobs) && divides_when(knobs, replicas) == NormalizeWhen::eager &&
         knobs.normalizer_scope == NormalizerScope::data_parallel;
}

}  // namespace

TrafficByAxis update_traffic(const RunSpec& spec, std::int64_t stage, const StageGradients& gradients) {
  const ParallelSpec& parallel = spec.parallel;
  const AccumulationKnobs knobs = resolve_knobs(spec);
  const double micro_steps = number(std::max<std::int64_t>(steps_of(spec.accumulation, parallel.data), 1));
  const double chunks = number(parallel.virtual_pipeline);
  const double sum = number(bytes_of_sum(knobs.accumulation_dtype, dtype_bytes(spec.model.dtype)));
  const bool first = stage == 0, last = stage == parallel.pipeline - 1;
  TrafficByAxis traffic;
  const auto along = [&](Axis axis) -> AxisTraffic& { return traffic[static_cast<std::size_t>(axis)]; };

  along(Axis::data) = gradient_traffic(spec, knobs, micro_steps, gradients);
  if (counts_first(knobs, parallel.data)) along(Axis::data).gathered += sum_words * word;
  if (spec.model.kind == ModelKind::gpt) {
    const double blocks = number(spec.model.layers) / number(parallel.pipeline);
    along(Axis::tensor) = layers_traffic(spec, blocks, first, last) * micro_steps;
    if (parallel.sequence) along(Axis::tensor).all_reduced += gradients.on_rows * sum;
    const MicroBatchShape shape(spec);
    const double messages = 2 * chunks - (first ? 1 : 0) - (last ? 1 : 0);
    along(Axis::pipeline).sent = messages * micro_steps * shape.hidden * shape.element;
    along(Axis::embedding).all_reduced = gradients.tied * sum;
  }
  along(parallel.zero > 0 ? Axis::world : Axis::model).gathered += sum_words * word;  // of the norm
  along(Axis::world).gathered += tally_words * word;
  if (takes_parameter_norms(spec.optimizer.kind)) {
    const double norms = 2 * gradients.parameters * word;
    if (parallel.zero > 0) along(Axis::data).gathered += norms;
    if (parallel.tensor > 1) along(Axis::tensor).gathered += norms;
  }
  return traffic;
}

}  // namespace accrue
