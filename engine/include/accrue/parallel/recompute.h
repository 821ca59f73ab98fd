// SPDX-License-Identifier: Apache-2.0
// Activation recomputation: backward needs what forward computed, and computes it a second time in place of keeping it.
// Memory falls from everything between a function's input and its output to the input; the function runs twice.
//
// Both runs give the same bits: a function that draws random numbers draws the same ones again.
// Source: Megatron-LM's tensor_parallel checkpoint.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

/// Of one tensor, and of parameters that live as long as the graph.
using Recomputable = std::function<at::Tensor(const at::Tensor&)>;

struct RecomputeOptions {
  bool draws = false;  ///< the function draws random numbers
  /// All ranks hold the same x: each keeps its part of the numbers, and backward gathers them.
  TensorAxis shared_by = {};
};

/// f(x), of which the graph keeps x alone. Backward runs f anew and adds to the .grad of what it uses. Without a graph
/// it is f(x).
/// Thread: training. Collective: as f, and over `shared_by` in backward. Errors: f's; std::invalid_argument where x
/// cannot be divided evenly.
at::Tensor recomputed(Recomputable f, const at::Tensor& x, const RecomputeOptions& options = {});

}  // namespace accrue
