// SPDX-License-Identifier: Apache-2.0
#include "train/model_axis.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/fields/block_form.h"
#include "comm/gathered.h"
#include "optim/flat_base.h"
#include "train/step_timer.h"
#include "update/complete_gradients.h"
#include "update/model_sums.h"

namespace accrue {
namespace {

constexpr std::string_view position_table = "position_embedding.weight";

/// Returns the dim along which the ranks hold parts.
std::int64_t divided_dim(const ParameterShare& share) {
  std::size_t dim = 0;
  while (share.extent[dim] == share.whole[dim]) ++dim;
  return static_cast<std::int64_t>(dim);
}

/// A padded parameter is divided by rows, equally many per rank, padding included.
at::Tensor whole_of(const at::Tensor& own, const ParameterShare& share, const TensorAxis& axis) {
  at::Tensor whole = own;
  if (share.divided) {
    // [extent] -> [t, extent] -> whole: the ranks' boxes are joined along the dim that divides them.
    const at::Tensor mine = own.view(share.padded ? share.shape : share.extent);
    const at::Tensor parts = gathered(axis.ranks(), mine, CollectivePurpose::parameters);
    whole = at::cat(parts.unbind(0), share.padded ? 0 : divided_dim(share));
  }
  if (share.padded) whole = whole.narrow(0, 0, share.whole_shape.front());
  return whole.view(share.whole_shape);
}

/// Returns a parameter of that name if stages of the axis hold copies of it.
std::optional<std::size_t> shared_parameter(const Training& training, std::string_view name, Axis axis) {
  if (!training.mesh.has(axis) || training.mesh.along(axis).size() == 1) return std::nullopt;
  const auto& names = training.model.names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// Parameters that only this rank's stage owns, undivided.
NamedTensors own_parameters(Training& training) {
  NamedTensors all;
  const auto& shares = training.model.shares();
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (!shares[i].shared)
      all.emplace_back(shares[i].name,
                       whole_of(training.model.slice(training.model.flat(), i), shares[i], training.tensor));
  return all;
}

/// The same for another stage, in its order, without the values.
std::vector<ParameterShare> owned_by(const Training& training, std::int64_t stage) {
  const RunSpec& spec = training.spec();
  std::vector<ParameterShare> owned;
  for (std::int64_t chunk = 0; chunk < spec.parallel.virtual_pipeline; ++chunk)
    for (ParameterShare& share : parameter_shares(spec.model, share_under(spec.model, spec.parallel, 0, stage, chunk)))
      if (!share.shared) owned.push_back(std::move(share));
  return owned;
}

}  // namespace

std::optional<std::size_t> tied_parameter(const Training& training) {
  if (!block_form(training.spec().model).tied_head) return std::nullopt;
  return shared_parameter(training, tied_embedding, Axis::embedding);
}

bool summed_over_tensor(const Training& training, std::size_t i) {
  return training.tensor.sequence() && training.model.shares()[i].on_rows;
}

void complete_gradients(Training& training) {
  const at::Tensor flat = training.reducer.flat_gradients();
  const auto ranges_of = [&](std::size_t i) {
    const std::vector<FlatRange> whole{training.model.layout().parameters[i]};
    return training.shard ? training.shard->owned(whole) : whole;
  };
  PartialGradients partial;
  for (std::size_t i = 0; i < training.model.shares().size(); ++i)
    // Sequence parallelism: norms and some biases see only a rank's rows [B T / t, D], so dW is the sum over the t
    // ranks.
    if (summed_over_tensor(training, i)) partial.on_rows.push_back(training.model.slice(flat, i));
  // A tied embedding is looked up on the first stage, and at a T5's split, and is the head's matrix on the last. Each
  // use gives a part of its gradient, and the stages' copies must get the same update.
  if (const auto tied = tied_parameter(training))
    for (const FlatRange& range : ranges_of(*tied)) partial.tied.push_back(part_of(flat, range));
  // Encoder and decoder of a T5 look up the same table of positions on two stages.
  if (const auto positions = shared_parameter(training, position_table, Axis::position_embedding)) {
    const FlatRange& table = training.model.layout().parameters[*positions];
    partial.table = at::zeros({table.size}, flat.options());
    for (const FlatRange& range : ranges_of(*positions))
      partial.positions.push_back({part_of(flat, range), range.offset - table.offset});
  }
  complete_gradients(partial, training.mesh, training.shard.has_value(),
                     [&](const char* timer, const auto& part) { timed(training, timer, part); });
}

std::vector<FlatRange> counted_ranges(const Training& training, bool with_padding) {
  std::vector<FlatRange> ranges;
  const auto& shares = training.model.shares();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!counts_here(shares[i].shared, shares[i].divided, training.tensor.rank())) continue;
    FlatRange range = training.model.layout().parameters[i];
    // Padding is at the end of a parameter. Its gradients are 0, unless vocabulary_padding = "megatron" trains it too.
    if (!with_padding) range.size = training.model.unpadded(training.model.flat(), i).numel();
    if (range.size > 0) ranges.push_back(range);
  }
  std::ranges::sort(ranges, {}, &FlatRange::offset);
  return ranges;
}

double gradient_norm(const Training& training) {
  // |G|^2 is the sum over ranks of the squares that each counts. A rank that holds the whole model needs no exchange:
  // replicas have equal gradients, and the arena's padding is 0.
  const at::Tensor flat = training.reducer.flat_gradients();
  if (training.mesh.model().size() == 1 && !training.shard) return flat_norm(flat);
  const auto counted = counted_ranges(training, true);
  const double squares = square_sum(flat, training.shard ? training.shard->owned(counted) : counted);
  return std::sqrt(sum_over_ranks(holders_of_parts(training.mesh, training.shard.has_value()), squares));
}

NamedTensors whole_parameters(Training& training) {
  NamedTensors own = own_parameters(training);
  Communicator& pipeline = training.mesh.pipeline();
  constexpr MessageLabel parameter{.what = MessageLabel::What::parameter};
  if (pipeline.size() == 1) return own;
  if (pipeline.rank() > 0) {
    for (const auto& [name, tensor] : own) pipeline.send(tensor.contiguous(), 0, parameter);
    return {};
  }
  // The order of messages follows from the spec on both sides (owned_by()), so none has to name its parameter.
  std::map<std::string, at::Tensor> all(own.begin(), own.end());
  for (std::int64_t stage = 1; stage < pipeline.size(); ++stage)
    for (const ParameterShare& share : owned_by(training, stage)) {
      at::Tensor tensor = at::empty(share.whole_shape, training.model.flat().options());
      pipeline.receive(tensor, stage, parameter);
      all.emplace(share.name, std::move(tensor));
    }
  NamedTensors in_order;
  for (const ParameterShape& shape : parameter_shapes(training.spec().model))
    in_order.emplace_back(shape.name, all.at(shape.name));
  return in_order;
}

}  // namespace accrue
