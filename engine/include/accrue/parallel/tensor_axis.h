// SPDX-License-Identifier: Apache-2.0
// How the ranks of a tensor axis share the work of a layer, and the pairs of operations that carry activations between
// what every rank computes and what each rank computes a part of. A pair's forward and backward are each other's
// adjoint, so autograd's gradients are those of the undivided model.
//
// Sequence parallelism keeps activations between the divided layers as rows: each rank holds its part of dim 0, in rank
// order. On an axis of one rank every operation returns its input.
//
// Thread: training. Collective: the tensor axis, backward included; the engine of autograd runs nodes in the order of
// their creation, reversed, which is the same on all ranks. Errors: as Communicator's; std::invalid_argument where a
// dim cannot be divided evenly.
// Source: Megatron-LM's tensor_parallel mappings.
#pragma once

#include "accrue/comm/communicator.h"

namespace accrue {

class TensorAxis {
 public:
  /// One rank.
  TensorAxis() = default;
  /// The communicator must outlive this and every graph that was made with it. `sequence` says how activations lie
  /// between divided layers; it means nothing on one rank.
  explicit TensorAxis(Communicator& ranks, bool sequence = false);

  std::int64_t rank() const { return ranks_ == nullptr ? 0 : ranks_->rank(); }
  std::int64_t size() const { return ranks_ == nullptr ? 1 : ranks_->size(); }
  bool split() const { return ranks_ != nullptr; }
  bool sequence() const { return sequence_; }
  Communicator& ranks() const { return *ranks_; }  ///< only where split()

  // Without a graph.
  /// In place, over the ranks.
  void sum(at::Tensor& tensor, CollectivePurpose purpose = CollectivePurpose::activations) const;
  /// [N / size, ...] -> [N, ...].
  at::Tensor gather_rows(const at::Tensor& rows) const;
  /// [N, ...] -> [N / size, ...]: this rank's rows of the sum over the ranks.
  at::Tensor sum_to_rows(const at::Tensor& tensor) const;
  /// This rank's rows: a view.
  at::Tensor own_rows(const at::Tensor& tensor) const;

 private:
  Communicator* ranks_ = nullptr;
  bool sequence_ = false;
};

/// Where a divided layer begins, on activations that all ranks hold: the tensor itself; backward sums over the ranks.
at::Tensor copy_to_tensor(const at::Tensor& x, const TensorAxis& axis);
/// Where it ends: the sum over the ranks; backward is the gradient itself.
at::Tensor sum_from_tensor(const at::Tensor& x, const TensorAxis& axis);
/// [..., D] -> [..., D / size]; backward gathers.
at::Tensor scatter_last_dim(const at::Tensor& x, const TensorAxis& axis);
/// [..., D / size] -> [..., D]; backward takes this rank's part.
at::Tensor gather_last_dim(const at::Tensor& x, const TensorAxis& axis);

/// [N, ...] -> [N / size, ...]: after an embedding, before rows are treated apart; backward gathers.
at::Tensor scatter_rows(const at::Tensor& x, const TensorAxis& axis);
/// What uses the gathered rows next, which decides the backward.
enum class RowsAreUsedBy {
  divided_layer,  ///< each rank has a part of the gradient: backward sums, and keeps this rank's rows
  every_rank,     ///< each rank has the whole gradient: backward takes this rank's rows
};
/// [N / size, ...] -> [N, ...].
at::Tensor gather_rows(const at::Tensor& x, const TensorAxis& axis, RowsAreUsedBy next);
/// Where a divided layer ends: this rank's rows of the sum; backward gathers.
at::Tensor sum_to_rows(const at::Tensor& x, const TensorAxis& axis);

}  // namespace accrue
