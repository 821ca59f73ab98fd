// SPDX-License-Identifier: Apache-2.0
// A block keeps, per row between the layers (R rows of D numbers) and per token (N tokens), in GPT-2's form:
//
//                          rows            tokens, each 1 / t of it
//   fused functions        2 D + 4         8 D + H          inputs, statistics; q k v, attention, hidden row; log-sums
//   operators              4 D + 4         12 D + H         also the norms' outputs and GELU's output
//   operators, dropout     6 D + 4         12 D + 3 H T     two masks of D; softmax, its mask and their product
//
// In other forms (BlockForm) the 12 D are those of q k v (Q + 2 K for widths Q of queries and K of keys), attention (Q)
// and the inner layer (2 I, or gated 3 I: both layers and their product). Rotated queries and keys add Q + K, and
// groups without rotation Q, because their queries are copied. An RMS norm has one statistic per row.
//
// The causal attention keeps no T x T matrix unless dropout needs one. Selective recomputation saves H T, and H with
// operators: the attention core is recomputed from q, k and v. Full recomputation keeps the input of each group of
// blocks. The cross attention of a T5's decoder is a third half of a block. It keeps q of its own tokens, and k and v
// of the encoder's. A chunk also keeps its output, which its last block's count excludes, until its gradient arrives.
// The head keeps the gradients of its input and its table (fused), or the norm's output and the log-softmax; and the
// loss.
#include "kept_activations.h"

#include <algorithm>
#include <cmath>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/block_form.h"
#include "memory_estimate.h"

namespace accrue {

namespace {

/// V / t. A rank of a divided table computes scores for all rows that it holds, including padding.
double classes_of_rank(const RunSpec& spec) {
  const std::int64_t ranks = std::max<std::int64_t>(spec.parallel.tensor, 1);
  if (ranks == 1) return number(classes_of(spec.model, 1));
  return number(padded_vocabulary(spec.model, ranks)) / number(ranks);
}

bool has_fused_functions(const RunSpec& spec, double element) {
  return is_decoder_only(spec.model.kind) && is_gpt2_form(block_form(spec.model)) &&
         spec.launch.device == DeviceKind::cpu && element >= 4;
}

/// Of a divided cross entropy, per token.
double label_bytes(double tokens) {
  return tokens * 9;  // an id of 8 bytes, and whether another rank holds it
}

/// Bytes that one block keeps of one micro-batch on one rank: e R rows + N (e tokens + attention) / t, for e bytes per
/// number and the columns of the table above. `core`: includes what attention keeps beside q, k and v.
double block_bytes(const ModelSpec& model, const MicroBatchShape& shape, bool core) {
  const double heads = number(model.heads);
  const BlockForm form = block_form(model);
  const double queries = number(form.query_width()), inner = number(form.mlp_width);
  // The table at the head of this file, before dropout.
  double rows = 4 * shape.width + (form.norm == NormKind::rms ? 2 : 4);
  const bool draws = model.dropout > 0 && core;
  // With dropout of the probabilities attention keeps scaled copies of queries, keys and values, of every head.
  double tokens = (draws ? 3 * queries : number(form.qkv_width())) + queries + (form.gated() ? 3 : 2) * inner;
  if (form.positions == PositionKind::rotary && core && !draws)
    tokens += queries + number(form.kv_width());
  else if (form.has_groups() && core && !draws)
    tokens += queries;
  double attention = shape.element * heads;
  if (shape.fused) {
    rows = 2 * shape.width + 4;
    tokens = 8 * shape.width;
  } else if (model.dropout > 0) {
    rows += 2 * shape.width;
    // Softmax, its mask and their product, H T numbers per token each. Attention of half types is computed in float32,
    // so q, k and v count with its size in place of their own.
    attention = 3 * (shape.sum * heads * number(model.context) + (shape.sum - shape.element) * shape.width);
  }
  if (!core && !shape.fused) attention = 0;
  // Rows are whole on this rank; what tokens have of heads and of the MLP is divided by t.
  return shape.element * shape.rows * rows + shape.tokens * (shape.element * tokens + attention) / shape.tensor;
}

/// States of the random generators, from which recomputation draws the same numbers: of the default one on a CPU, and
/// of the tensor axis's. A state is LibTorch's get_state(), 5,056 bytes, once per recomputed call.
double random_bytes(const RunSpec& spec, double calls) {
  constexpr double state = 5056;
  if (spec.model.dropout == 0 || spec.launch.device != DeviceKind::cpu) return 0;
  return calls * state * (spec.parallel.tensor > 1 ? 2 : 1);
}

/// Bytes of a chunk's blocks: inputs of the recomputed ones, e R D each (or 1 / t of it, if the ranks share them),
/// everything of the others, and the output, e R D.
double blocks_bytes(const RunSpec& spec, const MicroBatchShape& shape, double blocks, double more_in_block = 0) {
  const ParallelSpec& parallel = spec.parallel;
  const double output = shape.hidden * shape.element;
  const double whole = block_bytes(spec.model, shape, parallel.recompute != RecomputeKind::selective) + more_in_block;
  const RecomputedBlocks again = recomputed_of_chunk(parallel, blocks);
  // A chunk holds its received input until it has sent the gradient, whatever part of it is kept.
  const double inputs = again.shared ? again.inputs * output / shape.tensor + output : again.inputs * output;
  const double calls = parallel.recompute == RecomputeKind::selective ? blocks : again.inputs;
  return inputs + (blocks - again.blocks) * whole + output + random_bytes(spec, calls);
}

/// Bytes of the cross attention of one decoder block.
double cross_bytes(const RunSpec& spec, const MicroBatchShape& shape, const MicroBatchShape& encoder) {
  const ModelSpec& model = spec.model;
  const bool core = spec.parallel.recompute != RecomputeKind::selective;
  // The norm's input, output and two statistics; then q and the result per own token, k and v per token of the encoder.
  double rows = 2 * shape.width + 2;
  double attention = core ? shape.element * number(model.heads) : 0;
  if (model.dropout > 0) {
    rows += shape.width;
    if (core)
      attention =
          3 * (shape.sum * number(model.heads) * number(model.context) + (shape.sum - shape.element) * shape.width);
  }
  return shape.element * shape.rows * rows + (shape.tokens * (shape.element * 2 * shape.width + attention) +
                                              encoder.tokens * shape.element * 2 * shape.width) /
                                                 shape.tensor;
}

/// Bytes of a head in plain operators; `transforms`: with a layer and its norm before the table.
double head_bytes(const RunSpec& spec, const MicroBatchShape& shape, bool transforms) {
  // The norm's output and statistics; in the type of sums the log-softmax [N, V / t] and the loss.
  const double statistics = block_form(spec.model).norm == NormKind::rms ? 1 : 2;
  double kept =
      shape.element * (shape.hidden + statistics * shape.rows) + shape.sum * (shape.tokens * shape.classes + 1);
  if (transforms) kept += shape.element * (3 * shape.hidden + 2 * shape.rows);
  if (shape.tensor > 1 || spec.model.label_smoothing > 0) kept += label_bytes(shape.tokens);
  return kept;
}

/// Bytes of token embeddings: flags for ids on other ranks, and the dropout mask.
double embedding_bytes(const RunSpec& spec, const MicroBatchShape& shape) {
  double kept = shape.tensor > 1 ? label_bytes(shape.tokens) : 0;
  if (spec.model.dropout > 0) kept += shape.hidden * shape.element;
  return kept;
}

KeptByChunk bert_bytes(const RunSpec& spec, std::int64_t blocks) {
  const MicroBatchShape shape(spec);
  KeptByChunk kept{.blocks = blocks_bytes(spec, shape, number(blocks))};
  kept.first = embedding_bytes(spec, shape);
  if (recomputed_of_chunk(spec.parallel, number(blocks)).shared) kept.first -= shape.hidden * shape.element;
  kept.last = head_bytes(spec, shape, true);
  return kept;
}

KeptByChunk gpt_bytes(const RunSpec& spec, std::int64_t blocks) {
  const ModelSpec& model = spec.model;
  const MicroBatchShape shape(spec);
  KeptByChunk kept{.blocks = blocks_bytes(spec, shape, number(blocks))};
  if (const BlockForm form = block_form(model); form.positions == PositionKind::rotary && blocks > 0)
    kept.blocks += shape.element * number(model.context) * number(form.head_width);
  const bool split = shape.tensor > 1;
  if (split) kept.first += label_bytes(shape.tokens);
  if (recomputed_of_chunk(spec.parallel, number(blocks)).shared) kept.first -= shape.hidden * shape.element;
  if (model.dropout > 0) kept.first += shape.hidden * shape.element;
  if (shape.fused_head) {
    // The gradients of the norm's weight and bias, D each, and of the table, V / t x D; the loss.
    kept.last = shape.element * (shape.width * (2 + shape.classes) + 1);
  } else {
    kept.last = head_bytes(spec, shape, false);
  }
  return kept;
}

/// Bytes of an MLP or a linear model: samples x numbers x e, and outputs and loss in the type of sums.
/// Per sample: each layer's output, before its activation if its backward needs that, after it if the next layer does.
KeptByChunk dense_bytes(const RunSpec& spec) {
  const ModelSpec& model = spec.model;
  const double samples = number(spec.accumulation.micro_batch), element = number(dtype_bytes(model.dtype));
  double numbers = 0;
  if (model.kind == ModelKind::mlp)
    for (const std::int64_t width : model.hidden)
      numbers += number(width) * (1 + (hidden_activation(model) == Activation::gelu) + model.batch_norm);
  return {.blocks = samples * numbers * element,
          .last = (samples * number(model.outputs) + 2) * std::max(element, 4.0)};
}

}  // namespace

MicroBatchShape::MicroBatchShape(const RunSpec& spec, std::int64_t context)
    : tensor(number(std::max<std::int64_t>(spec.parallel.tensor, 1))),
      tokens(number(spec.accumulation.micro_batch) * number(context)),
      rows(spec.parallel.sequence ? tokens / tensor : tokens),
      width(number(spec.model.width)),
      hidden(rows * width),
      element(number(dtype_bytes(spec.model.dtype))),
      sum(std::max(element, 4.0)),
      classes(classes_of_rank(spec)),
      fused_head(has_fused_functions(spec, element) && spec.model.label_smoothing == 0),
      fused(has_fused_functions(spec, element) && spec.model.dropout == 0) {}

RecomputedBlocks recomputed_of_chunk(const ParallelSpec& parallel, double blocks) {
  if (parallel.recompute != RecomputeKind::full) return {};
  const bool shared = parallel.distribute_saved_activations && parallel.tensor > 1;
  const double at_once = std::max(1.0, number(parallel.recompute_layers));
  if (parallel.recompute_method == RecomputeMethod::uniform) return {blocks, std::ceil(blocks / at_once), shared};
  const double first = std::min(at_once, blocks);
  return {first, first, shared};
}

KeptByChunk kept_by_chunk(const RunSpec& spec, std::int64_t blocks) {
  if (is_decoder_only(spec.model.kind)) return gpt_bytes(spec, blocks);
  return spec.model.kind == ModelKind::bert ? bert_bytes(spec, blocks) : dense_bytes(spec);
}

double t5_message(const RunSpec& spec, std::int64_t stage) {
  const std::int64_t split = split_part(spec.model, spec.parallel.pipeline, spec.parallel.split_stage.value_or(0));
  const double encoder = MicroBatchShape(spec).hidden;
  return stage < split ? encoder : encoder + MicroBatchShape(spec, spec.model.tokens_of_decoder()).hidden;
}

double kept_by_t5_stage(const RunSpec& spec, std::int64_t stage) {
  const ModelShare share = share_under(spec.model, spec.parallel, 0, stage, 0);
  const std::int64_t split = split_part(spec.model, share.parts, share.split);
  const MicroBatchShape encoder(spec), decoder(spec, spec.model.tokens_of_decoder());
  const BlockRange encodes = blocks_of(spec.model, share), decodes = decoder_blocks_of(spec.model, share);
  double kept = 0;
  if (encodes.last > encodes.first) {
    kept += blocks_bytes(spec, encoder, number(encodes.last - encodes.first));
    if (share.first()) kept += embedding_bytes(spec, encoder);
    // The norm at its end, whose output is passed on.
    if (share.parts == 1 || stage + 1 == split) kept += encoder.element * (encoder.hidden + 2 * encoder.rows);
  }
  if (decodes.last > decodes.first) {
    const double output = encoder.hidden * encoder.element;
    kept += blocks_bytes(spec, decoder, number(decodes.last - decodes.first), cross_bytes(spec, decoder, encoder));
    if (stage == split) kept += embedding_bytes(spec, decoder);
    // The input for recomputed blocks holds both; behind the split the first input is the received tensor.
    const RecomputedBlocks again = recomputed_of_chunk(spec.parallel, number(decodes.last - decodes.first));
    const double whole = again.inputs - (again.inputs > 0 && stage != split ? 1 : 0);
    kept += again.shared ? whole * output / encoder.tensor : whole * output;
    if (share.parts > 1) kept += output;  // received, and passed on with the decoder's
    if (share.parts > 1 && !share.last()) kept += output;
    if (share.last()) kept += head_bytes(spec, decoder, false);
  }
  return kept;
}

double spared_of_a_block(RunSpec spec) {
  const MicroBatchShape shape(spec);
  const auto kept = [&] { return blocks_bytes(spec, shape, number(spec.model.layers)) - blocks_bytes(spec, shape, 0); };
  // 1 - (kept with recomputation) / (kept without), of a chunk's blocks without its ends.
  const double with = kept();
  spec.parallel.recompute = RecomputeKind::none;
  return 1.0 - with / kept();
}

double working_bytes(const RunSpec& spec) {
  const ModelSpec& model = spec.model;
  if (!is_transformer(model.kind)) return kept_by_chunk(spec, 0).last;
  const bool t5 = model.kind == ModelKind::t5;
  const MicroBatchShape shape(spec, t5 ? std::max(model.context, model.tokens_of_decoder()) : model.context);
  // A block's backward: the hidden row's gradient and its recomputed activation, [N, 4 D / t] each in GPT-2's form;
  // rows of all ranks, [N, D]; and three gradients of rows, [R, D].
  const BlockForm form = block_form(model);
  const double hidden = number(form.mlp_width) * (form.gated() ? 2 : 1);
  double block = shape.element * (shape.tokens * (shape.width + 2 * hidden / shape.tensor) + 3 * shape.hidden);
  if (!shape.fused && model.dropout > 0)
    block += 2 * shape.element * shape.tokens * number(model.heads) * number(model.context) / shape.tensor;
  const double one = block_bytes(model, shape, true);
  if (spec.parallel.recompute == RecomputeKind::selective)
    block += one - block_bytes(model, shape, false);
  else if (spec.parallel.recompute == RecomputeKind::full)
    block += one * (spec.parallel.recompute_method == RecomputeMethod::block
                        ? 1.0
                        : std::min(number(spec.parallel.recompute_layers), number(model.layers)));
  constexpr double most_logits = 1 << 24;
  // The fused head's chunk (models/fused_head.cpp), at most 2^24 logits, and the gradient of its input, [N, D]; or all
  // logits [N, V / t] and their gradient, in the type of sums.
  const double rows_at_once = std::clamp(most_logits / shape.classes, 1.0, shape.tokens);
  const double head = shape.fused_head ? shape.element * (rows_at_once * shape.classes + shape.tokens * shape.width)
                                       : 2 * shape.sum * shape.tokens * shape.classes;
  return std::max(block, head);
}

}  // namespace accrue
