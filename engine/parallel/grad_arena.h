// SPDX-License-Identifier: Apache-2.0
// One flat tensor for all gradients; each parameter's .grad is a view of its place. So AccumulateGrad adds in place,
// micro-steps accumulate without a second copy, a reduction takes contiguous buckets, and clearing is one memset. If it
// takes products (place()), weight gradients of linear layers do not exist outside it: their backward adds each product
// to its view (direct_gradient.h). All other gradients arrive as tensors and are added: biases, norms, embeddings, and
// the tied table's part of the fused head, which is computed along with the loss, before backward knows its divisor.
//
// A parameter has no .grad until a backward reaches it: expect() gives it its view just before the first gradient is
// added. So dropping gradients (zero_grad()'s default) costs nothing. Assigning .grad, or running backward with
// create_graph, moves the gradient out of the arena; collect() detects this by the data pointer and copies it back.
//
// The arena may be wider than the parameters: half-precision gradients are then added to float32 views. With
// compensation no view is bound while its gradient arrives: the gradient is added together with the rounding-error
// term, and then the view is bound for readers of .grad.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "accrue/run/cost/shard_layout.h"

namespace accrue {

class GradArena {
 public:
  /// flat: [layout.numel], zeroed, of the accumulation type, on the parameters' device; compensation: of the same
  /// shape, or undefined. Drops every .grad.
  GradArena(std::vector<at::Tensor> parameters, FlatLayout layout, at::Tensor flat, at::Tensor compensation);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const FlatLayout& layout() const { return layout_; }
  const at::Tensor& flat() const { return flat_; }
  const at::Tensor& compensation() const { return compensation_; }
  at::Tensor bucket(std::size_t index) const;

  /// Call before a gradient of parameter i is added: makes .grad its view, zeroed if the gradient had been dropped.
  /// With compensation removes .grad instead, so that the gradient arrives separately.
  void expect(std::size_t i);
  /// Parameter i's view, to which a product may be added after expect(). Undefined if the sum is compensated, or
  /// rounded to half precision after each addition: gradients then arrive separately.
  at::Tensor place(std::size_t i) const;
  /// With compensation, call once the gradient has arrived: adds it to the sum by Kahan's method, and binds the view
  /// again.
  void fold(std::size_t i);
  /// Synchronises the arena with .grad: copies an assigned gradient in, clears the place of a dropped one. Returns
  /// whether parameter i has a gradient.
  bool collect(std::size_t i);
  /// Whether parameter i has a gradient now.
  bool has(std::size_t i) const { return parameters_[i].grad().defined(); }
  /// Declares that parameter i's place is its gradient (has), or that it has none.
  void set(std::size_t i, bool has);
  /// Clears the memory and drops every gradient.
  void zero();

 private:
  void bind(std::size_t i);
  void clear_dropped(std::size_t i);

  std::vector<at::Tensor> parameters_;
  FlatLayout layout_;
  at::Tensor flat_;
  at::Tensor compensation_;
  std::vector<at::Tensor> views_;
  std::vector<at::Tensor> lost_;        ///< views of the compensation
  std::vector<char> in_use_;            ///< .grad was the view: if there is no .grad now, the gradient has been dropped
  std::vector<std::int64_t> versions_;  ///< of the views after fold(): a change means that other code wrote to them
};

}  // namespace accrue
