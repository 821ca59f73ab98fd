// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/cost/model_share.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/choice_names.h"

namespace accrue {
namespace {

struct DecoderShare {
  BlockRange blocks;
  std::int64_t part = 0;  ///< the first with decoder blocks
};

bool holds(const ModelShare& share, const BlockRange& blocks, const DecoderShare& decoder,
           const ParameterShape& parameter) {
  switch (parameter.place) {
    case ParameterPlace::first_part:
      return share.first();
    case ParameterPlace::block:
      return parameter.block >= blocks.first && parameter.block < blocks.last;
    case ParameterPlace::encoder_end:
      return share.parts == 1 || share.part == decoder.part - 1;
    case ParameterPlace::decoder_block:
      return parameter.block >= decoder.blocks.first && parameter.block < decoder.blocks.last;
    case ParameterPlace::last_part:
      return share.last();
  }
  return false;
}

/// A parameter as rank r of t tensor-parallel ranks holds it. By rows a matrix [O, I] becomes [O / t, I], by columns
/// [O, I / t], part r of each; qkv's [3 D, D] becomes the box [3, D / t, D] in [3, D, D].
ParameterShare share_of(const ParameterShape& parameter, const ModelShare& share) {
  ParameterShare own{.name = parameter.name, .whole = parameter.shape, .decays = parameter.decays};
  std::size_t dim = 0;
  switch (parameter.division) {
    case ParameterDivision::none:
      break;
    case ParameterDivision::rows:
      own.divided = true;
      break;
    case ParameterDivision::columns:
      own.divided = true;
      dim = 1;
      break;
    case ParameterDivision::packed_rows:
      own.divided = true;
      // [3 D, ...] as [3, D, ...]: a rank takes its heads' rows of queries, of keys and of values.
      own.whole.front() /= 3;
      own.whole.insert(own.whole.begin(), 3);
      dim = 1;
      break;
    case ParameterDivision::packed_halves:
      own.divided = true;
      // Likewise [2 D, ...] as [2, D, ...]: keys and values.
      own.whole.front() /= 2;
      own.whole.insert(own.whole.begin(), 2);
      dim = 1;
      break;
  }
  // Norms and the biases of row-parallel layers, which see this rank's rows only. Embeddings come before the division
  // into rows.
  own.on_rows =
      share.tensor_ranks > 1 && !own.divided && parameter.place != ParameterPlace::first_part && !parameter.every_rank;
  own.divided = own.divided && share.tensor_ranks > 1;
  own.offset.assign(own.whole.size(), 0);
  own.extent = own.whole;
  own.shape = parameter.shape;
  own.whole_shape = parameter.shape;
  if (!own.divided) return own;
  own.extent[dim] /= share.tensor_ranks;
  own.offset[dim] = share.tensor_rank * own.extent[dim];
  own.shape[parameter.division == ParameterDivision::columns ? 1 : 0] /= share.tensor_ranks;
  return own;
}

/// Pads the rows of a table whose modules have more rows than there are tokens.
void pad(ParameterShare& table, const ModelSpec& model, const ModelShare& share) {
  const std::int64_t rows = padded_vocabulary(model, share.tensor_ranks);
  if (rows == model.vocabulary) return;
  const std::int64_t each = rows / share.tensor_ranks, stored = table.whole.front();
  table.padded = true;
  table.shape.front() = each;
  table.whole_shape.front() = model.vocabulary;
  table.offset.front() = std::min(share.tensor_rank * each, stored);
  // The last ranks may hold few tokens, or none; their other rows are zero.
  table.extent.front() = std::min(each, stored - table.offset.front());
}

std::int64_t round_up(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

std::string uneven(const char* key, std::int64_t size, const char* by, std::int64_t parts) {
  return std::string(key) + " " + std::to_string(size) + " is not a multiple of " + by + " " + std::to_string(parts);
}

}  // namespace

std::int64_t ParameterShare::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t split_part(const ModelSpec& model, std::int64_t parts, std::int64_t split) {
  if (model.kind != ModelKind::t5 || parts == 1) return 0;
  return split > 0 ? split : parts / 2;
}

BlockRange blocks_of(const ModelSpec& model, const ModelShare& share) {
  const std::int64_t split = split_part(model, share.parts, share.split);
  if (share.part >= split && split > 0) return {model.layers, model.layers};
  const std::int64_t each = model.layers / (split > 0 ? split : share.parts);
  return {share.part * each, (share.part + 1) * each};
}

BlockRange decoder_blocks_of(const ModelSpec& model, const ModelShare& share) {
  const std::int64_t split = split_part(model, share.parts, share.split);
  if (model.kind != ModelKind::t5 || share.part < split) return {};
  const std::int64_t each = model.blocks_of_decoder() / (share.parts - split);
  return {(share.part - split) * each, (share.part - split + 1) * each};
}

ModelShare share_under(const ModelSpec& model, const ParallelSpec& parallel, std::int64_t tensor_rank,
                       std::int64_t stage, std::int64_t chunk) {
  const std::int64_t parts = parallel.pipeline * parallel.virtual_pipeline;
  // Interleaved: part i is chunk i / p of stage i % p.
  return {.tensor_ranks = parallel.tensor,
          .tensor_rank = tensor_rank,
          .parts = parts,
          .part = chunk * parallel.pipeline + stage,
          .split = split_part(model, parts, parallel.split_stage.value_or(0))};
}

std::vector<BlockRange> recomputed_blocks(const ParallelSpec& parallel, std::int64_t blocks) {
  if (parallel.recompute != RecomputeKind::full) return {};
  // uniform: all blocks, in groups of recompute_layers that keep one input each. block: the first recompute_layers
  // blocks, one by one; the rest keep everything.
  const bool uniform = parallel.recompute_method == RecomputeMethod::uniform;
  const std::int64_t end = uniform ? blocks : std::min(parallel.recompute_layers, blocks);
  const std::int64_t at_once = uniform ? parallel.recompute_layers : 1;
  std::vector<BlockRange> ranges;
  for (std::int64_t first = 0; first < end; first += at_once) ranges.push_back({first, std::min(first + at_once, end)});
  return ranges;
}

std::int64_t padded_vocabulary(const ModelSpec& model, std::int64_t tensor_ranks) {
  const bool fixed = model.vocabulary_padding == VocabularyPadding::fixed;
  // Megatron-LM pads to multiples of (make-vocab-size-divisible-by x tensor ranks). With 128, GPT-2's 50,257 tokens get
  // 50,304 rows on one rank and 51,200 on eight. "fixed" has the same rows for any number of ranks.
  return round_up(model.vocabulary, fixed ? model.vocabulary_multiple : model.vocabulary_multiple * tensor_ranks);
}

std::int64_t classes_of(const ModelSpec& model, std::int64_t tensor_ranks) {
  const bool fixed = model.vocabulary_padding == VocabularyPadding::fixed;
  return fixed ? model.vocabulary : padded_vocabulary(model, tensor_ranks);
}

std::vector<ParameterShare> parameter_shares(const ModelSpec& model, const ModelShare& share) {
  const BlockRange blocks = blocks_of(model, share);
  const DecoderShare decoder{decoder_blocks_of(model, share), split_part(model, share.parts, share.split)};
  const bool at_split = decoder.part > 0 && share.part == decoder.part;
  const bool tied = block_form(model).tied_head;
  std::vector<ParameterShare> own;
  for (const ParameterShape& parameter : parameter_shapes(model, share.tensor_ranks)) {
    const bool embeds = is_transformer(model.kind) && parameter.place == ParameterPlace::first_part;
    // The last part needs a tied table for its logits, and the part at a split both embeddings for the decoder's
    // tokens.
    const bool copied = embeds && (at_split || (parameter.by_token && tied && share.last()));
    if (!holds(share, blocks, decoder, parameter) && !copied) continue;
    own.push_back(share_of(parameter, share));
    own.back().shared = !share.first() && copied;
    if (parameter.by_token) pad(own.back(), model, share);
  }
  return own;
}

std::string check_share(const ModelSpec& model, std::int64_t tensor_ranks, std::int64_t parts, std::int64_t split) {
  if (tensor_ranks == 1 && parts == 1) return {};
  if (!is_transformer(model.kind))
    return "model.kind \"" + std::string(to_name(model.kind)) + "\" is not divided: only models of tokens are";
  if (model.heads % tensor_ranks != 0) return uneven("model.heads", model.heads, "parallel.tensor", tensor_ranks);
  const BlockForm form = block_form(model);
  if (form.kv_heads % tensor_ranks != 0)
    return uneven("model.kv_heads", form.kv_heads, "parallel.tensor", tensor_ranks);
  if (form.mlp_width % tensor_ranks != 0)
    return uneven("model.mlp_width", form.mlp_width, "parallel.tensor", tensor_ranks);
  if (const std::int64_t rows = padded_vocabulary(model, tensor_ranks); rows % tensor_ranks != 0)
    return uneven("model.vocabulary", rows, "parallel.tensor", tensor_ranks);
  if (model.kind == ModelKind::t5 && parts > 1) {
    const std::int64_t first = split_part(model, parts, split);
    if (first < 1 || first >= parts)
      return "parallel.split_stage " + std::to_string(first) + " leaves no stage for the " +
             (first < 1 ? "encoder" : "decoder");
    if (model.layers % first != 0)
      return uneven("model.layers", model.layers, "the encoder's parallel.split_stage", first);
    if (model.blocks_of_decoder() % (parts - first) != 0)
      return uneven("model.decoder_layers", model.blocks_of_decoder(),
                    "the decoder's parallel.pipeline - parallel.split_stage", parts - first);
    return {};
  }
  if (model.layers % parts != 0)
    return uneven("model.layers", model.layers, "parallel.pipeline x parallel.virtual_pipeline", parts);
  return {};
}

std::string check_division(const ModelSpec& model, const ParallelSpec& parallel) {
  if (model.kind == ModelKind::t5 && parallel.virtual_pipeline > 1)
    return "parallel.virtual_pipeline " + std::to_string(parallel.virtual_pipeline) +
           ": the stages of a T5 are not interleaved, since its decoder reads what the encoder ends with";
  return check_share(model, parallel.tensor, parallel.pipeline * parallel.virtual_pipeline,
                     parallel.split_stage.value_or(0));
}

}  // namespace accrue
