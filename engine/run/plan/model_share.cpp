// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/model_share.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "accrue/run/choice_names.h"
#include "accrue/run/shard_layout.h"

namespace accrue {
namespace {

bool holds(const ModelShare& share, const BlockRange& blocks, const ParameterShape& parameter) {
  switch (parameter.place) {
    case ParameterPlace::first_part:
      return share.first();
    case ParameterPlace::block:
      return parameter.block >= blocks.first && parameter.block < blocks.last;
    case ParameterPlace::last_part:
      return share.last();
  }
  return false;
}

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
      own.whole.front() /= 3;
      own.whole.insert(own.whole.begin(), 3);
      dim = 1;
      break;
  }
  own.on_rows = share.tensor_ranks > 1 && !own.divided && parameter.place != ParameterPlace::first_part;
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

/// The rows of a table whose modules have more of them than there are tokens.
void pad(ParameterShare& table, const ModelSpec& model, const ModelShare& share) {
  const std::int64_t rows = padded_vocabulary(model, share.tensor_ranks);
  if (rows == model.vocabulary) return;
  const std::int64_t each = rows / share.tensor_ranks, stored = table.whole.front();
  table.padded = true;
  table.shape.front() = each;
  table.whole_shape.front() = model.vocabulary;
  table.offset.front() = std::min(share.tensor_rank * each, stored);
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

BlockRange blocks_of(const ModelSpec& model, const ModelShare& share) {
  const std::int64_t each = model.layers / share.parts;
  return {share.part * each, (share.part + 1) * each};
}

std::vector<BlockRange> recomputed_blocks(const ParallelSpec& parallel, std::int64_t blocks) {
  if (parallel.recompute != RecomputeKind::full) return {};
  const bool uniform = parallel.recompute_method == RecomputeMethod::uniform;
  const std::int64_t end = uniform ? blocks : std::min(parallel.recompute_layers, blocks);
  const std::int64_t at_once = uniform ? parallel.recompute_layers : 1;
  std::vector<BlockRange> ranges;
  for (std::int64_t first = 0; first < end; first += at_once) ranges.push_back({first, std::min(first + at_once, end)});
  return ranges;
}

std::int64_t padded_vocabulary(const ModelSpec& model, std::int64_t tensor_ranks) {
  const bool fixed = model.vocabulary_padding == VocabularyPadding::fixed;
  return round_up(model.vocabulary, fixed ? model.vocabulary_multiple : model.vocabulary_multiple * tensor_ranks);
}

std::int64_t classes_of(const ModelSpec& model, std::int64_t tensor_ranks) {
  const bool fixed = model.vocabulary_padding == VocabularyPadding::fixed;
  return fixed ? model.vocabulary : padded_vocabulary(model, tensor_ranks);
}

std::vector<ParameterShare> parameter_shares(const ModelSpec& model, const ModelShare& share) {
  const BlockRange blocks = blocks_of(model, share);
  std::vector<ParameterShare> own;
  for (const ParameterShape& parameter : parameter_shapes(model, share.tensor_ranks)) {
    const bool table = model.kind == ModelKind::gpt && parameter.name == "token_embedding.weight";
    const bool tied = table && share.last();
    if (!holds(share, blocks, parameter) && !tied) continue;
    own.push_back(share_of(parameter, share));
    own.back().shared = !share.first() && tied;
    if (table) pad(own.back(), model, share);
  }
  return own;
}

std::string check_share(const ModelSpec& model, std::int64_t tensor_ranks, std::int64_t parts) {
  if (tensor_ranks == 1 && parts == 1) return {};
  if (model.kind != ModelKind::gpt)
    return "model.kind \"" + std::string(to_name(model.kind)) + "\" is not divided: only \"gpt\" is";
  if (model.heads % tensor_ranks != 0) return uneven("model.heads", model.heads, "parallel.tensor", tensor_ranks);
  if (const std::int64_t rows = padded_vocabulary(model, tensor_ranks); rows % tensor_ranks != 0)
    return uneven("model.vocabulary", rows, "parallel.tensor", tensor_ranks);
  if (model.layers % parts != 0)
    return uneven("model.layers", model.layers, "parallel.pipeline x parallel.virtual_pipeline", parts);
  return {};
}

}  // namespace accrue
