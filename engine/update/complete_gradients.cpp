// SPDX-License-Identifier: Apache-2.0
#include "update/complete_gradients.h"

#include <ATen/ops/cat.h>

namespace accrue {
namespace {

/// With two stages the embedding axis is the pipeline axis, so the name of the exchange is not sufficient.
constexpr const char* embedding_timer = "embedding-grads-all-reduce";

/// Uses one exchange.
void sum_rows(const std::vector<at::Tensor>& gradients, Communicator& tensor) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& each : gradients) flat.push_back(each.reshape({-1}));
  at::Tensor all = at::cat(flat);
  tensor.all_reduce_gradients(all);
  std::int64_t from = 0;
  for (const at::Tensor& each : gradients) {
    each.copy_(all.narrow(0, from, each.numel()).view(each.sizes()));
    from += each.numel();
  }
}

/// Under ZeRO the owners of a number differ between the stages, so each replica first gets the whole table, which is
/// small. That exchange sums nothing over the replicas, so it does not count as a gradient reduction.
void sum_positions(const PartialGradients& partial, const Mesh& mesh, bool sharded) {
  at::Tensor table = partial.table;
  const auto at = [&](const TablePart& part) { return table.narrow(0, part.offset, part.gradient.numel()); };
  for (const TablePart& each : partial.positions) at(each).copy_(each.gradient);
  if (sharded) mesh.data().all_reduce(table, Reduce::sum, CollectivePurpose::agreement);
  mesh.along(Axis::position_embedding).all_reduce_gradients(table);
  for (const TablePart& each : partial.positions) each.gradient.copy_(at(each));
}

}  // namespace

void complete_gradients(const PartialGradients& partial, const Mesh& mesh, bool sharded, const TimedPart& timed) {
  const auto several = [&mesh](Axis axis) { return mesh.has(axis) && mesh.along(axis).size() > 1; };
  if (!partial.on_rows.empty()) timed("layernorm-grads-all-reduce", [&] { sum_rows(partial.on_rows, mesh.tensor()); });
  if (!partial.tied.empty() && several(Axis::embedding))
    timed(embedding_timer, [&] {
      for (at::Tensor each : partial.tied) mesh.along(Axis::embedding).all_reduce_gradients(each);
    });
  if (partial.table.defined() && several(Axis::position_embedding))
    timed(embedding_timer, [&] { sum_positions(partial, mesh, sharded); });
}

}  // namespace accrue
