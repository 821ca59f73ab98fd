// SPDX-License-Identifier: Apache-2.0
#include "train/model_axis.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/model_share.h"
#include "accrue/run/shard_layout.h"
#include "train/step_timer.h"

namespace accrue {
namespace {

/// Of two stages the axis is the pipeline's, so the name of the exchange does not tell.
constexpr const char* embedding_timer = "embedding-grads-all-reduce";
constexpr std::string_view position_table = "position_embedding.weight";

/// The dim along which the ranks hold parts.
std::int64_t divided_dim(const ParameterShare& share) {
  std::size_t dim = 0;
  while (share.extent[dim] == share.whole[dim]) ++dim;
  return static_cast<std::int64_t>(dim);
}

/// A padded parameter is divided by rows, which the ranks hold equally many of, padding included.
at::Tensor whole_of(const at::Tensor& own, const ParameterShare& share, const TensorAxis& axis) {
  at::Tensor whole = own;
  if (share.divided) {
    std::vector<std::int64_t> sizes = share.padded ? share.shape : share.extent;
    const at::Tensor mine = own.view(sizes);
    sizes.insert(sizes.begin(), axis.size());
    at::Tensor parts = at::empty(sizes, own.options());
    axis.ranks().all_gather(parts, mine, CollectivePurpose::parameters);
    whole = at::cat(parts.unbind(0), share.padded ? 0 : divided_dim(share));
  }
  if (share.padded) whole = whole.narrow(0, 0, share.whole_shape.front());
  return whole.view(share.whole_shape);
}

/// Over the tensor axis, what each rank computed on its own rows.
void sum_rows(Training& training) {
  const at::Tensor flat = training.reducer.flat_gradients();
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < training.model.shares().size(); ++i)
    if (summed_over_tensor(training, i)) parts.push_back(training.model.slice(flat, i).view({-1}));
  if (parts.empty()) return;
  timed(training, "layernorm-grads-all-reduce", [&] {
    at::Tensor all = at::cat(parts);
    training.tensor.sum(all, CollectivePurpose::gradients);
    std::int64_t from = 0;
    for (at::Tensor& part : parts) {
      part.copy_(all.narrow(0, from, part.numel()));
      from += part.numel();
    }
  });
}

/// A parameter of that name, where stages of the axis hold copies of it.
std::optional<std::size_t> shared_parameter(const Training& training, std::string_view name, Axis axis) {
  if (!training.mesh.has(axis) || training.mesh.along(axis).size() == 1) return std::nullopt;
  const auto& names = training.model.names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// Over the embedding axis, the uses of a tied embedding. Under ZeRO of what this rank owns: both stages cut it
/// alike (FlatLayout's `alone`), so the ranks of a group own the same elements.
void sum_tied_embedding(Training& training) {
  const auto tied = tied_parameter(training);
  if (!tied) return;
  timed(training, embedding_timer, [&] {
    const at::Tensor flat = training.reducer.flat_gradients();
    std::vector<FlatRange> ranges{training.model.layout().parameters[*tied]};
    if (training.shard) ranges = training.shard->owned(ranges);
    for (const FlatRange& range : ranges) {
      at::Tensor gradient = flat.narrow(0, range.offset, range.size);
      training.mesh.along(Axis::embedding).all_reduce_gradients(gradient);
    }
  });
}

/// Over the position-embedding axis, the two uses of a T5's positions. Under ZeRO the owners of a number differ between
/// the stages, so each replica first gets the whole of it: the table is small. That exchange adds nothing up over the
/// replicas, so it is none of the gradient reductions that are counted.
void sum_positions_of(Training& training, const FlatRange& table) {
  const at::Tensor flat = training.reducer.flat_gradients();
  Communicator& stages = training.mesh.along(Axis::position_embedding);
  at::Tensor gradient = flat.narrow(0, table.offset, table.size);
  if (!training.shard) return stages.all_reduce_gradients(gradient);
  at::Tensor whole = at::zeros_like(gradient);
  const auto owned = training.shard->owned({table});
  for (const FlatRange& range : owned)
    whole.narrow(0, range.offset - table.offset, range.size).copy_(flat.narrow(0, range.offset, range.size));
  training.mesh.data().all_reduce(whole, Reduce::sum, CollectivePurpose::agreement);
  stages.all_reduce_gradients(whole);
  for (const FlatRange& range : owned)
    flat.narrow(0, range.offset, range.size).copy_(whole.narrow(0, range.offset - table.offset, range.size));
}

void sum_positions(Training& training) {
  const auto at = shared_parameter(training, position_table, Axis::position_embedding);
  if (!at) return;
  timed(training, embedding_timer, [&] { sum_positions_of(training, training.model.layout().parameters[*at]); });
}

/// What this rank's stage holds and no other owns, undivided.
NamedTensors own_parameters(Training& training) {
  NamedTensors all;
  const auto& shares = training.model.shares();
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (!shares[i].shared)
      all.emplace_back(shares[i].name,
                       whole_of(training.model.slice(training.model.flat(), i), shares[i], training.tensor));
  return all;
}

/// The same of another stage, in its order, without the values.
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
  return shared_parameter(training, tied_embedding, Axis::embedding);
}

bool summed_over_tensor(const Training& training, std::size_t i) {
  return training.tensor.sequence() && training.model.shares()[i].on_rows;
}

void complete_gradients(Training& training) {
  if (training.tensor.sequence()) sum_rows(training);
  sum_tied_embedding(training);
  sum_positions(training);
}

double gradient_norm(const Training& training) {
  const at::Tensor flat = training.reducer.flat_gradients();
  if (training.mesh.model().size() == 1 && !training.shard) return flat_norm(flat);
  auto counted = counted_ranges(training.model.segments(training.spec().optimizer), training.mesh.at().tensor);
  std::ranges::sort(counted, {}, &FlatRange::offset);
  Communicator& axis = training.shard ? training.mesh.world() : training.mesh.model();
  const double squares = square_sum(flat, training.shard ? training.shard->owned(counted) : counted);
  return std::sqrt(sum_over_ranks(axis, {squares, 0.0, 0.0})[0]);
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
