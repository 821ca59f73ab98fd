// SPDX-License-Identifier: Apache-2.0
#include "train/model_axis.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <vector>

namespace accrue {
namespace {

/// The dim along which the ranks hold parts.
std::int64_t divided_dim(const ParameterShare& share) {
  std::size_t dim = 0;
  while (share.extent[dim] == share.whole[dim]) ++dim;
  return static_cast<std::int64_t>(dim);
}

at::Tensor whole_of(const at::Tensor& own, const ParameterShare& share, const TensorAxis& axis) {
  if (!share.divided) return own;
  std::vector<std::int64_t> sizes = share.extent;
  sizes.insert(sizes.begin(), axis.size());
  at::Tensor parts = at::empty(sizes, own.options());
  axis.ranks().all_gather(parts, own.view(share.extent));
  return at::cat(parts.unbind(0), divided_dim(share)).view(share.whole_shape);
}

}  // namespace

bool summed_over_tensor(const Training& training, std::size_t i) {
  return training.tensor.sequence() && training.model.shares()[i].on_rows;
}

void complete_gradients(Training& training) {
  if (!training.tensor.sequence()) return;
  const at::Tensor flat = training.reducer.flat_gradients();
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < training.model.shares().size(); ++i)
    if (summed_over_tensor(training, i)) parts.push_back(training.model.slice(flat, i).view({-1}));
  at::Tensor all = at::cat(parts);
  training.tensor.sum(all);
  std::int64_t from = 0;
  for (at::Tensor& part : parts) {
    part.copy_(all.narrow(0, from, part.numel()));
    from += part.numel();
  }
}

double gradient_norm(const Training& training) {
  const at::Tensor flat = training.reducer.flat_gradients();
  if (training.mesh.model().size() == 1) return flat_norm(flat);
  const auto counted = counted_ranges(training.optimizer->segments(), training.mesh.at().tensor);
  return std::sqrt(sum_over_ranks(training.mesh.model(), {square_sum(flat, counted), 0.0, 0.0})[0]);
}

NamedTensors whole_parameters(Training& training) {
  NamedTensors all;
  const auto& shares = training.model.shares();
  for (std::size_t i = 0; i < shares.size(); ++i)
    all.emplace_back(shares[i].name,
                     whole_of(training.model.slice(training.model.flat(), i), shares[i], training.tensor));
  return all;
}

}  // namespace accrue
