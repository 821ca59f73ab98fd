// SPDX-License-Identifier: Apache-2.0
// Activation recomputation: backward recomputes the intermediate results of forward instead of storing them. Memory
// falls from everything between a function's input and its output to the input alone; the function runs twice.
//
// Both runs give the same bits: a function that draws random numbers draws the same ones again.
// Source: Megatron-LM's tensor_parallel checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

/// A function of one tensor, and of parameters that live as long as the graph.
using Recomputable = std::function<at::Tensor(const at::Tensor&)>;

struct RecomputeOptions {
  bool draws = false;  ///< the function draws random numbers
  /// All ranks hold the same x: each stores its part of it, and backward gathers the parts.
  TensorAxis shared_by = {};
};

/// Returns f(x), of which the graph stores only x. Backward runs f again and adds to the .grad of its parameters.
/// Without a graph it is f(x).
/// Thread: training. Collective: as f, and over `shared_by` in backward. Errors: f's; std::invalid_argument if x cannot
/// be divided evenly.
at::Tensor recomputed(Recomputable f, const at::Tensor& x, const RecomputeOptions& options = {});

}  // namespace accrue
