// SPDX-License-Identifier: Apache-2.0
// A weight's gradient is a product of two matrices. Where gradients are summed over micro-steps, a backward function
// need not make it and hand it over: it adds the product to the sum while it computes it, and returns no gradient. The
// sum's owner hears of that when autograd reaches the weight, after all functions that use it.
//
// Source: gradient accumulation fusion of Megatron-LM's linear layers. They return a dummy for hooks to fire; here an
// undefined gradient does, so a tied weight needs none that is zero.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>

namespace accrue {

/// A hook before a weight's gradient is accumulated, through which functions reach the sum.
class GradientReceiver : public torch::autograd::FunctionPreHook {
 public:
  /// The sum, ready for a product; undefined if it takes none. Taking it announces a gradient.
  virtual at::Tensor place() = 0;
};

/// Whether products of this weight's gradient may be added in place in a backward to come.
bool takes_products(const at::Tensor& weight);

/// In a backward function: the sum of the weight's gradients, of its shape and of its type or wider, to which this
/// function's product must then be added; undefined if it must be returned, as for autograd::grad() and create_graph.
/// Thread: the one that runs backward.
at::Tensor gradient_place(const at::Tensor& weight);

/// place += a b. Numbers of half precision are widened first, so that nothing is rounded to them on the way.
void add_widened(at::Tensor& place, const at::Tensor& a, const at::Tensor& b);

}  // namespace accrue
