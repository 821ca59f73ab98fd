// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/model_share.h"

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

std::string uneven(const char* key, std::int64_t size, const char* by, std::int64_t parts) {
  return std::string(key) + " " + std::to_string(size) + " is not a multiple of " + by + " " + std::to_string(parts);
}

}  // namespace

std::int64_t ParameterShare::numel() const {
  return std::accumulate(extent.begin(), extent.end(), std::int64_t{1}, std::multiplies<>());
}

BlockRange blocks_of(const ModelSpec& model, const ModelShare& share) {
  const std::int64_t each = model.layers / share.parts;
  return {share.part * each, (share.part + 1) * each};
}

std::vector<ParameterShare> parameter_shares(const ModelSpec& model, const ModelShare& share) {
  const BlockRange blocks = blocks_of(model, share);
  std::vector<ParameterShare> own;
  for (const ParameterShape& parameter : parameter_shapes(model)) {
    const bool tied = model.kind == ModelKind::gpt && share.last() && parameter.name == "token_embedding.weight";
    if (!holds(share, blocks, parameter) && !tied) continue;
    own.push_back(share_of(parameter, share));
    own.back().shared = !share.first() && tied;
  }
  return own;
}

std::string check_share(const ModelSpec& model, std::int64_t tensor_ranks, std::int64_t parts) {
  if (tensor_ranks == 1 && parts == 1) return {};
  if (model.kind != ModelKind::gpt)
    return "model.kind \"" + std::string(to_name(model.kind)) + "\" is not divided: only \"gpt\" is";
  if (model.heads % tensor_ranks != 0) return uneven("model.heads", model.heads, "parallel.tensor", tensor_ranks);
  if (model.vocabulary % tensor_ranks != 0)
    return uneven("model.vocabulary", model.vocabulary, "parallel.tensor", tensor_ranks);
  if (model.layers % parts != 0)
    return uneven("model.layers", model.layers, "parallel.pipeline x parallel.virtual_pipeline", parts);
  return {};
}

}  // namespace accrue
