// SPDX-License-Identifier: Apache-2.0
// Sharing of a layer's work over a tensor axis: pairs of operations that convert activations between a copy on every
// rank and a part on each rank. The forward and backward of a pair are each other's adjoint, so autograd's gradients
// are those of the undivided model.
//
// Sequence parallelism keeps activations between the divided layers as rows: each rank holds its part of dim 0, in rank
// order. On an axis of one rank every operation returns its input.
//
// Thread: training. Collective: the tensor axis, including backward; autograd's engine runs nodes in reverse order of
// creation, which is the same on all ranks. Errors: as Communicator's; std::invalid_argument if a dim cannot be divided
// evenly.
// Source: Megatron-LM's tensor_parallel mappings.
#pragma once

#include "accrue/comm/communicator.h"

namespace accrue {

class TensorAxis {
 public:
  /// An axis of one rank.
  TensorAxis() = default;
  /// The communicator must outlive this and every graph that was made with it. `sequence`: layout of activations
  /// between divided layers; no effect on one rank.
  explicit TensorAxis(Communicator& ranks, bool sequence = false);

  std::int64_t rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  std::int64_t size() const { return ranks_ == nullptr ? 1 : ranks_->size(); }
  bool split() const { return ranks_ != nullptr; }
  bool sequence() const { return sequence_; }
  Communicator& ranks() const { return *ranks_; }  ///< only if split()

  // Without a graph.
  /// Sums in place over the ranks.
  void sum(at::Tensor& tensor, CollectivePurpose purpose = CollectivePurpose::activations) const;
  /// [N / size, ...] -> [N, ...].
  at::Tensor gather_rows(const at::Tensor& rows) const;
  /// [N, ...] -> [N / size, ...]: this rank's rows of the sum over the ranks.
  at::Tensor sum_to_rows(const at::Tensor& tensor) const;
  /// Returns this rank's rows: a view.
  at::Tensor own_rows(const at::Tensor& tensor) const;

 private:
  Communicator* ranks_ = nullptr;
  bool sequence_ = false;
};

/// Start of a divided layer, on activations that all ranks hold: returns the tensor itself; backward sums over the
/// ranks.
at::Tensor copy_to_tensor(const at::Tensor& x, const TensorAxis& axis);
/// End of a divided layer: sums over the ranks; backward passes the gradient through.
at::Tensor sum_from_tensor(const at::Tensor& x, const TensorAxis& axis);
/// [..., D] -> [..., D / size]; backward gathers.
at::Tensor scatter_last_dim(const at::Tensor& x, const TensorAxis& axis);
/// [..., D / size] -> [..., D]; backward takes this rank's part.
at::Tensor gather_last_dim(const at::Tensor& x, const TensorAxis& axis);

/// [N, ...] -> [N / size, ...], after an embedding, before row-wise operations; backward gathers.
at::Tensor scatter_rows(const at::Tensor& x, const TensorAxis& axis);
/// Next user of the gathered rows, which decides the backward.
enum class RowsAreUsedBy {
  divided_layer,  ///< each rank has a part of the gradient: backward sums, and keeps this rank's rows
  every_rank,     ///< each rank has the whole gradient: backward takes this rank's rows
};
/// [N / size, ...] -> [N, ...].
at::Tensor gather_rows(const at::Tensor& x, const TensorAxis& axis, RowsAreUsedBy next);
/// End of a divided layer: returns this rank's rows of the sum; backward gathers.
at::Tensor sum_to_rows(const at::Tensor& x, const TensorAxis& axis);

}  // namespace accrue
