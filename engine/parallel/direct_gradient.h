// SPDX-License-Identifier: Apache-2.0
// Direct accumulation of weight gradients. A weight's gradient is a product of two matrices. If gradients are summed
// over micro-steps, a backward function need not return it as a tensor: it adds the product to the sum while computing
// it, and returns no gradient. The sum's owner is notified when autograd reaches the weight, after all functions that
// use it.
//
// Source: gradient accumulation fusion of Megatron-LM's linear layers. They return a dummy to trigger hooks; here an
// undefined gradient triggers them, so a tied weight needs no zero dummy.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>

namespace accrue {

/// A hook before the accumulation of a weight's gradient, by which functions reach the sum.
class GradientReceiver : public torch::autograd::FunctionPreHook {
 public:
  /// Returns the sum, ready for a product; undefined if it takes none. The call announces a gradient.
  virtual at::Tensor place() = 0;
};

/// Whether products of this weight's gradient may be added in place in a later backward.
bool takes_products(const at::Tensor& weight);

/// For a backward function: returns the sum of the weight's gradients, of its shape and of its type or wider, to which
/// this function must add its product. Undefined if the product must be returned, as for autograd::grad() and
/// create_graph. Thread: the one that runs backward.
at::Tensor gradient_place(const at::Tensor& weight);

/// place += a b. Half-precision numbers are widened first, so that no intermediate result is rounded to them.
void add_widened(at::Tensor& place, const at::Tensor& a, const at::Tensor& b);

}  // namespace accrue
