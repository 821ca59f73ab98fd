// SPDX-License-Identifier: Apache-2.0
// Norms of a model of which this rank holds a part: |x|^2 is the sum of the parts' squares, each counted on one rank.
// Roots are taken after the sums. Ranks add in rank order, so all get the same bits.
#include "train/parameter_norms.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "comm/gathered.h"
#include "train/model_axis.h"
#include "train/step_timer.h"
#include "update/model_sums.h"

namespace accrue {
namespace {

/// Sums the ranks' tensors, in rank order. Shapes: own [...] -> [...]. A gather and additions here, because the order
/// in which a backend's all-reduce adds is its own.
at::Tensor over_ranks(Communicator& axis, const at::Tensor& own) {
  const at::Tensor all = gathered(axis, own);
  at::Tensor total = all[0].clone();
  for (std::int64_t rank = 1; rank < axis.size(); ++rank) total.add_(all[rank]);
  return total;
}

/// Under ZeRO a segment is a piece of a parameter, and a rank may hold several or none, so the rows are by parameter.
std::vector<std::int64_t> rows_of_segments(const Training& training) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < training.optimizer->segments().size(); ++i)
    rows.push_back(static_cast<std::int64_t>(training.shard ? training.shard->parts()[i].parameter : i));
  return rows;
}

/// Returns the rows of parameters that are divided over the tensor ranks, equal on all of them.
std::vector<bool> divided_rows(const Training& training) {
  std::vector<bool> divided;
  if (training.shard)
    for (const ParameterShare& share : training.model.shares()) divided.push_back(share.divided);
  else
    for (const OptimizerSegment& segment : training.optimizer->segments()) divided.push_back(segment.tensor_split);
  return divided;
}

}  // namespace

UpdateMeasurement::UpdateMeasurement(Training& training) : training_(training) {
  const RunSection& run = training.spec().run;
  if (!run.measures_updates()) return;
  // Padding rows are no part of the model, and would count as zeros of the gradient.
  const std::vector<FlatRange> counted = counted_ranges(training, false);
  ranges_ = training.shard ? training.shard->packed(counted) : counted;
  if (run.update_norm) before_ = training.masters.values().clone();
  if (!run.gradient_zeros) return;
  timed(training, "optimizer-count-zeros", [&] {
    zeros_ = static_cast<double>(
        zeros_in(training.reducer.flat_gradients(), training.shard ? training.shard->owned(counted) : counted));
  });
}

void UpdateMeasurement::put_into(Update& update) const {
  const RunSection& run = training_.spec().run;
  if (!run.measures_updates()) return;
  // Each rank counts its own ranges: |w - w_before|^2, |w|^2 and the number of zeros.
  const at::Tensor& weights = training_.masters.values();
  const double moved = run.update_norm ? square_sum(weights - before_, ranges_) : 0.0;
  const double length = run.parameter_norm ? square_sum(weights, ranges_) : 0.0;
  const auto sums =
      sum_over_ranks(holders_of_parts(training_.mesh, training_.shard.has_value()), {moved, length, zeros_});
  if (run.update_norm) update.update_norm = std::sqrt(sums[0]);
  if (run.parameter_norm) update.parameter_norm = std::sqrt(sums[1]);
  if (run.gradient_zeros) update.gradient_zeros = static_cast<std::int64_t>(sums[2]);
}

// LAMB and LARS scale a parameter's step by a ratio of two norms, so both sums of squares must be of the whole
// parameter before the root is taken.
void complete_sums(const Training& training, at::Tensor& sums) {
  const bool over_tensor = training.tensor.size() > 1;
  if (!training.shard && !over_tensor) return;
  const auto rows = at::tensor(rows_of_segments(training), at::kLong).to(sums.device());
  const std::vector<bool> divided = divided_rows(training);
  const auto parameters = static_cast<std::int64_t>(divided.size());
  // [segments, 2] -> [parameters, 2]: pieces of one parameter on this rank are added.
  at::Tensor whole = at::zeros({parameters, 2}, sums.options()).index_add_(0, rows, sums);
  // Over the replicas that share the parameters under ZeRO, then over the tensor ranks that divide them.
  if (training.shard) whole = over_ranks(training.mesh.data(), whole);
  if (over_tensor) {
    at::Tensor is_divided = at::zeros({parameters, 1}, at::kBool);
    for (std::int64_t i = 0; i < parameters; ++i)
      is_divided.mutable_data_ptr<bool>()[i] = divided[static_cast<std::size_t>(i)];
    // Each copy of a replicated parameter is whole already: adding t copies would multiply its norm by sqrt(t).
    whole = at::where(is_divided.to(sums.device()), over_ranks(training.mesh.tensor(), whole), whole);
  }
  sums.copy_(whole.index_select(0, rows));
}

}  // namespace accrue
