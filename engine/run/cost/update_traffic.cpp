// SPDX-License-Identifier: Apache-2.0
// All in bytes of one rank's payload, as AxisTraffic counts it.
// Per micro-step:  a block makes four all-reduces of its rows on the tensor axis, or with sequence parallelism four
//                  reduce-scatters and six gathers (two of them repeat, in backward, gathers of forward);
//                  embedding and head make their own; each stage border has a message in each direction.
// Per update:      gradients along data, whole or by shards; the completion of divided gradients; the words by which
//                  the ranks agree.
#include "update_traffic.h"

#include <algorithm>

#include "accrue/run/cost/model_share.h"
#include "kept_activations.h"
#include "memory_estimate.h"
#include "window_length.h"

namespace accrue {

namespace {

/// Sizes of agreements. A tally is 13 counts and losses of a window and 3 requests (train/agreement.cpp).
constexpr double word = 8;          ///< numbers of agreements are sent as doubles
constexpr double tally_words = 16;  ///< from each rank to all, at a boundary
constexpr double sum_words = 3;     ///< a sum over ranks gathers this many from each

/// Bytes of activations: of all positions, and of this rank's rows.
struct Rows {
  double all;
  double own;
  explicit Rows(const MicroBatchShape& shape)
      : all(shape.tokens * shape.width * shape.element), own(shape.hidden * shape.element) {}
};

/// Traffic of one micro-step of blocks with `halves` halves each (attention, cross attention, MLP). A half sums once in
/// forward, the results of its second layer, and once in backward, the gradient of its first layer's input (Shoeybi et
/// al., arXiv:1909.08053); under sequence parallelism each sum is a reduce-scatter with a gather on the other
/// side of the layer, and backward gathers its input again. Source: Korthikanti et al., arXiv:2205.05198.
AxisTraffic blocks_traffic(const RunSpec& spec, double blocks, double halves, const Rows& rows) {
  const bool sequence = spec.parallel.sequence;
  AxisTraffic traffic;
  if (sequence)
    traffic = {.scattered = 2 * halves * blocks * rows.all, .gathered = 3 * halves * blocks * rows.own};
  else
    traffic = {.all_reduced = 2 * halves * blocks * rows.all};
  // Recomputation repeats the forward's communication; an input that ranks share is gathered first.
  const double chunks = number(spec.parallel.virtual_pipeline);
  const RecomputedBlocks again = recomputed_of_chunk(spec.parallel, blocks / chunks);
  if (sequence)
    traffic +=
        {.scattered = halves * chunks * again.blocks * rows.all, .gathered = halves * chunks * again.blocks * rows.own};
  else
    traffic.all_reduced += halves * chunks * again.blocks * rows.all;
  if (again.shared) traffic.gathered += chunks * again.inputs * rows.own / number(spec.parallel.tensor);
  return traffic;
}

/// The encoder's rows as each decoder block reads them for its keys and values. In backward their gradient is summed
/// over the ranks. Under sequence parallelism that is a reduce-scatter, and the rows are gathered in forward, again in
/// backward, and once more in each block that is recomputed.
AxisTraffic encoder_rows_traffic(const RunSpec& spec, double blocks, const Rows& rows) {
  if (!spec.parallel.sequence) return {.all_reduced = blocks * rows.all};
  const RecomputedBlocks again = recomputed_of_chunk(spec.parallel, blocks);
  return {.scattered = blocks * rows.all, .gathered = (2 * blocks + again.blocks) * rows.own};
}

/// Embeddings of tokens and positions, whole on every rank: a rank looks up the tokens of its rows of the table, and
/// the sum over the ranks is [N, D]. Under sequence parallelism backward gathers the gradient of all rows.
AxisTraffic embedding_traffic(const RunSpec& spec, const Rows& rows) {
  return {.all_reduced = rows.all, .gathered = spec.parallel.sequence ? rows.own : 0};
}

/// A head in plain operators, and its loss: each row's largest logit and three sums, [N] each in the type of sums.
/// Backward sums the gradient of the head's input over the ranks, [N, D].
AxisTraffic head_traffic(const RunSpec& spec, const MicroBatchShape& shape) {
  const Rows rows(shape);
  AxisTraffic traffic{.all_reduced = 4 * shape.tokens * shape.sum};
  if (spec.parallel.sequence)
    traffic += {.scattered = rows.all, .gathered = 2 * rows.own};
  else
    traffic.all_reduced += rows.all;
  return traffic;
}

AxisTraffic t5_traffic(const RunSpec& spec, std::int64_t stage) {
  const ModelShare share = share_under(spec.model, spec.parallel, 0, stage, 0);
  const MicroBatchShape encoder(spec), decoder(spec, spec.model.tokens_of_decoder());
  const Rows encoder_rows(encoder), decoder_rows(decoder);
  const BlockRange encodes = blocks_of(spec.model, share), decodes = decoder_blocks_of(spec.model, share);
  const double decoding = number(decodes.last - decodes.first);
  AxisTraffic traffic = blocks_traffic(spec, number(encodes.last - encodes.first), 2, encoder_rows);
  traffic += blocks_traffic(spec, decoding, 3, decoder_rows);
  traffic += encoder_rows_traffic(spec, decoding, encoder_rows);
  if (share.first()) traffic += embedding_traffic(spec, encoder_rows);
  if (stage == split_part(spec.model, share.parts, share.split)) traffic += embedding_traffic(spec, decoder_rows);
  if (share.last()) traffic += head_traffic(spec, decoder);
  return traffic;
}

/// Traffic of one micro-step of a BERT stage.
AxisTraffic bert_traffic(const RunSpec& spec, double blocks, bool first, bool last) {
  const MicroBatchShape shape(spec);
  const Rows rows(shape);
  AxisTraffic traffic = blocks_traffic(spec, blocks, 2, rows);
  if (first) traffic += embedding_traffic(spec, rows);
  if (!last) return traffic;
  traffic += head_traffic(spec, shape);
  if (spec.parallel.sequence && spec.model.binary_head) traffic.gathered += rows.own;  // for the pooler
  return traffic;
}

/// Traffic of one micro-step of a stage's blocks and ends on the tensor axis.
AxisTraffic layers_traffic(const RunSpec& spec, double blocks, bool first, bool last) {
  const MicroBatchShape shape(spec);
  const bool sequence = spec.parallel.sequence;
  const double all = shape.tokens * shape.width * shape.element, own = shape.hidden * shape.element;
  AxisTraffic traffic = blocks_traffic(spec, blocks, 2, Rows(shape));
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

/// Gradients of one update along data: once, once per micro-step, or (ZeRO) scattered, with the parameters gathered
/// back. An all-reduce of B bytes is a scatter and a gather, so ZeRO moves as many bytes where parameters are as wide
/// as sums, and fewer where they are half as wide. Source: Rajbhandari et al., arXiv:1910.02054.
AxisTraffic gradient_traffic(const RunSpec& spec, const AccumulationKnobs& knobs, double micro_steps,
                             const StageGradients& gradients) {
  const double element = number(bytes_of_sum(knobs.accumulation_dtype, dtype_bytes(spec.model.dtype)));
  const double bytes = gradients.numel * element;
  if (spec.parallel.zero > 0)
    return {.all_reduced = 4 * gradients.parameters,  // flags of parameters with a gradient
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

/// Whether the ranks count a window's items beforehand, because a micro-step divides by them (K6), or by two counts.
bool counts_first(const AccumulationKnobs& knobs, const RunSpec& spec) {
  const bool eager = divides_when(knobs, spec.parallel.data) == NormalizeWhen::eager;
  return counts_items(knobs) && (eager || has_second_loss(spec.model)) &&
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
  if (counts_first(knobs, spec)) along(Axis::data).gathered += sum_words * word;
  if (is_transformer(spec.model.kind)) {
    const double blocks = number(spec.model.layers) / number(parallel.pipeline);
    const bool t5 = spec.model.kind == ModelKind::t5;
    along(Axis::tensor) = (t5                                   ? t5_traffic(spec, stage)
                           : spec.model.kind == ModelKind::bert ? bert_traffic(spec, blocks, first, last)
                                                                : layers_traffic(spec, blocks, first, last)) *
                          micro_steps;
    if (parallel.sequence) along(Axis::tensor).all_reduced += gradients.on_rows * sum;
    const MicroBatchShape shape(spec);
    // Each chunk sends its activations on and a gradient back, but for the ends of the pipeline.
    const double messages = 2 * chunks - (first ? 1 : 0) - (last ? 1 : 0);
    double numbers = messages * shape.hidden;
    if (t5) numbers = (last ? 0 : t5_message(spec, stage)) + (first ? 0 : t5_message(spec, stage - 1));
    along(Axis::pipeline).sent = numbers * micro_steps * shape.element;
    along(Axis::embedding).all_reduced = gradients.tied * sum;
    along(Axis::position_embedding).all_reduced = gradients.positions * sum;
    if (parallel.zero > 0) along(Axis::data).all_reduced += gradients.positions * sum;
  }
  // The gradient's norm, and other measurements of an update.
  const double sums = spec.run.measures_updates() ? 2 : 1;
  along(parallel.zero > 0 ? Axis::world : Axis::model).gathered += sums * sum_words * word;
  along(Axis::world).gathered += tally_words * word;
  if (takes_parameter_norms(spec.optimizer.kind)) {
    // |p|^2 and |u|^2 (or |g|^2) of every parameter.
    const double norms = 2 * gradients.parameters * word;
    if (parallel.zero > 0) along(Axis::data).gathered += norms;
    if (parallel.tensor > 1) along(Axis::tensor).gathered += norms;
  }
  return traffic;
}

}  // namespace accrue
