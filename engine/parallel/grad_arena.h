// SPDX-License-Identifier: Apache-2.0
// One flat tensor in which all gradients live; each parameter's .grad is a view of its place. AccumulateGrad then adds
// in place, so micro-steps accumulate without a second copy, a reduction takes contiguous buckets, and clearing is one
// memset. Where it takes products (place()), weight gradients of linear layers do not exist outside it: their backward
// adds each product to its view (direct_gradient.h). All else is handed over as a tensor and added: biases, norms,
// embeddings, and the tied table's part of the fused head, which is computed along with the loss, before backward says
// what divides it.
//
// A parameter has no .grad until a backward reaches it: expect() gives it its view just before the first gradient is
// added. Dropping gradients (zero_grad()'s default) therefore costs nothing. Assigning .grad, or running backward with
// create_graph, takes the gradient out of the arena: collect() notices by the data pointer and copies it back.
//
// The arena may be wider than the parameters: half-precision gradients are then added to float32 views. With
// compensation no view is bound while its gradient arrives: the gradient is folded in with the term that carries what
// was rounded off, and then the view is bound for readers of .grad.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "accrue/run/shard_layout.h"

namespace accrue {

class GradArena {
 public:
  /// flat: [layout.numel], zeroed, of the type gradients accumulate in, on the parameters' device; compensation: of the
  /// same shape, or undefined. Drops every .grad.
  GradArena(std::vector<at::Tensor> parameters, FlatLayout layout, at::Tensor flat, at::Tensor compensation);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  const FlatLayout& layout() const { return layout_; }
  const at::Tensor& flat() const { return flat_; }
  const at::Tensor& compensation() const { return compensation_; }
  at::Tensor bucket(std::size_t index) const;

  /// Before a gradient of parameter i is added: makes .grad its view, cleared if the gradient had been dropped. With
  /// compensation removes .grad instead, so that the gradient arrives on its own.
  void expect(std::size_t i);
  /// Parameter i's view, for a product to be added to after expect(); undefined where the sum is compensated, or
  /// rounded to half precision after each addition: there gradients arrive on their own.
  at::Tensor place(std::size_t i) const;
  /// With compensation, once the gradient has arrived: adds it to the sum, Kahan's way, and binds the view again.
  void fold(std::size_t i);
  /// Brings the arena up to date with .grad: copies an assigned gradient in, clears the place of a dropped one. True if
  /// parameter i has a gradient.
  bool collect(std::size_t i);
  /// True if parameter i has a gradient now.
  bool has(std::size_t i) const { return parameters_[i].grad().defined(); }
  /// Declares parameter i's place to be its gradient (has), or that it has none.
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
  std::vector<char> in_use_;            ///< the view was .grad: without a .grad now, its gradient has been dropped
  std::vector<std::int64_t> versions_;  ///< of the views after fold(): a change means that other code wrote to them
};

}  // namespace accrue
