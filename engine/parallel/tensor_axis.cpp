// SPDX-License-Identifier: Apache-2.0
// Forward and backward of a pair are adjoint: the adjoint of a copy to all ranks is the sum over them, that of taking a
// part is gathering the parts. Source: Shoeybi et al., arXiv:1909.08053 (f and g), and Korthikanti et al.,
// arXiv:2205.05198 (their forms for rows).
#include "accrue/parallel/tensor_axis.h"

#include <ATen/ops/empty.h>

#include <vector>

#include "parallel/even_part.h"
#include "parallel/kept_axis.h"

namespace accrue {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [...] -> [...]: the sum over the ranks, in a new tensor.
at::Tensor summed(const at::Tensor& x, const TensorAxis& axis) {
  at::Tensor sum = x.clone(at::MemoryFormat::Contiguous);
  axis.sum(sum);
  return sum;
}

/// [..., D] -> [..., D / t].
at::Tensor own_last(const at::Tensor& x, const TensorAxis& axis) {
  const std::int64_t part = even_part(x.size(-1), axis, "numbers of the last dim");
  return x.narrow(-1, axis.rank() * part, part).contiguous();
}

/// [..., D / t] -> [..., D].
at::Tensor gathered_last(const at::Tensor& x, const TensorAxis& axis) {
  const at::Tensor in = x.contiguous();
  std::vector<std::int64_t> sizes{axis.size()};
  sizes.insert(sizes.end(), in.sizes().begin(), in.sizes().end());
  at::Tensor all = at::empty(sizes, in.options());
  axis.ranks().all_gather(all, in, CollectivePurpose::activations);
  sizes.erase(sizes.begin());
  sizes.back() *= axis.size();
  // [t, ..., D / t] -> [..., t, D / t] -> [..., D].
  return all.movedim(0, -2).reshape(sizes);
}

/// A pair: forward and backward are plain functions of a tensor and the axis.
template <auto Forward, auto Backward>
struct Pair : torch::autograd::Function<Pair<Forward, Backward>> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const TensorAxis& axis) {
    keep_axis(ctx, axis);
    return Forward(x, axis);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {Backward(grads[0], kept_axis(ctx)), {}};
  }
};

template <auto Forward, auto Backward>
at::Tensor apply(const at::Tensor& x, const TensorAxis& axis) {
  return axis.split() ? Pair<Forward, Backward>::apply(x, axis) : x;
}

at::Tensor same(const at::Tensor& x, const TensorAxis&) {
  return x.view_as(x);
}

/// [N / t, ...] -> [N, ...].
at::Tensor rows_gathered(const at::Tensor& x, const TensorAxis& axis) {
  return axis.gather_rows(x);
}

/// [N, ...] -> [N / t, ...]: this rank's rows of the sum.
at::Tensor rows_summed(const at::Tensor& x, const TensorAxis& axis) {
  return axis.sum_to_rows(x);
}

/// [N, ...] -> [N / t, ...].
at::Tensor rows_taken(const at::Tensor& x, const TensorAxis& axis) {
  return axis.own_rows(x).clone();
}

}  // namespace

TensorAxis::TensorAxis(Communicator& ranks, bool sequence)
    : ranks_(ranks.size() > 1 ? &ranks : nullptr), sequence_(sequence && ranks.size() > 1) {}

void TensorAxis::sum(at::Tensor& tensor, CollectivePurpose purpose) const {
  if (split()) ranks_->all_reduce(tensor, Reduce::sum, purpose);
}

at::Tensor TensorAxis::gather_rows(const at::Tensor& rows) const {
  if (!split()) return rows;
  const at::Tensor in = rows.contiguous();
  auto sizes = in.sizes().vec();
  sizes.front() *= size();
  at::Tensor all = at::empty(sizes, in.options());
  ranks_->all_gather(all, in, CollectivePurpose::activations);
  return all;
}

at::Tensor TensorAxis::sum_to_rows(const at::Tensor& tensor) const {
  if (!split()) return tensor;
  const at::Tensor in = tensor.contiguous();
  auto sizes = in.sizes().vec();
  sizes.front() = even_part(sizes.front(), *this, "rows");
  at::Tensor own = at::empty(sizes, in.options());
  ranks_->reduce_scatter(own, in, CollectivePurpose::activations);
  return own;
}

at::Tensor TensorAxis::own_rows(const at::Tensor& tensor) const {
  const std::int64_t part = even_part(tensor.size(0), *this, "rows");
  return tensor.narrow(0, rank() * part, part);
}

at::Tensor copy_to_tensor(const at::Tensor& x, const TensorAxis& axis) {
  return apply<same, summed>(x, axis);
}

at::Tensor sum_from_tensor(const at::Tensor& x, const TensorAxis& axis) {
  return apply<summed, same>(x, axis);
}

at::Tensor scatter_last_dim(const at::Tensor& x, const TensorAxis& axis) {
  return apply<own_last, gathered_last>(x, axis);
}

at::Tensor gather_last_dim(const at::Tensor& x, const TensorAxis& axis) {
  return apply<gathered_last, own_last>(x, axis);
}

at::Tensor scatter_rows(const at::Tensor& x, const TensorAxis& axis) {
  return apply<rows_taken, rows_gathered>(x, axis);
}

at::Tensor gather_rows(const at::Tensor& x, const TensorAxis& axis, RowsAreUsedBy next) {
  return next == RowsAreUsedBy::divided_layer ? apply<rows_gathered, rows_summed>(x, axis)
                                              : apply<rows_gathered, rows_taken>(x, axis);
}

at::Tensor sum_to_rows(const at::Tensor& x, const TensorAxis& axis) {
  return apply<rows_summed, rows_gathered>(x, axis);
}

}  // namespace accrue
