// SPDX-License-Identifier: Apache-2.0
// Layers whose weights are divided over a tensor axis, for any LibTorch model. The last dim of activations is the
// features; under sequence parallelism (TensorAxis) their dim 0 is divided between the layers.
//
// Weights are drawn like the undivided layer's, from the current default generator, and each rank keeps its part: ranks
// that draw the same numbers hold the same model, for any number of ranks. Parameters are named as in torch::nn's
// layers.
//
// Under sequence parallelism, parameters that act on a rank's own rows (a norm between the layers, a row-parallel bias)
// have a part of their gradient on each rank: sum it over the axis before the optimizer steps.
//
// Thread: training. Collective: the tensor axis, forward and backward. Errors: std::invalid_argument if a dim cannot be
// divided evenly.
// Source: Megatron-LM's tensor_parallel layers and cross entropy.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

struct ColumnParallelOptions {
  bool bias = true;
  bool gather_output = false;  ///< every rank gets [..., outputs]; not under sequence parallelism
};

/// y = x weight^T + bias, divided by outputs: each rank computes [..., outputs / size].
class ColumnParallelLinear : public torch::nn::Module {
 public:
  ColumnParallelLinear(std::int64_t inputs, std::int64_t outputs, const TensorAxis& axis,
                       ColumnParallelOptions options = {});
  /// Shapes: x [..., inputs], or this rank's rows of it under sequence parallelism.
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;  ///< [outputs / size, inputs]
  at::Tensor bias;    ///< [outputs / size], or undefined

 private:
  TensorAxis axis_;
  ColumnParallelOptions options_;
};

struct RowParallelOptions {
  bool bias = true;
  bool input_is_parallel = true;  ///< false: x is whole on every rank and divided here; not under sequence parallelism
};

/// y = x weight^T + bias, divided by inputs: the ranks' products are summed, then every rank adds the bias. Under
/// sequence parallelism a rank adds it to its own rows only, so its gradient must be summed over the axis.
class RowParallelLinear : public torch::nn::Module {
 public:
  RowParallelLinear(std::int64_t inputs, std::int64_t outputs, const TensorAxis& axis, RowParallelOptions options = {});
  /// Shapes: x [..., inputs / size] -> [..., outputs], or this rank's rows of it under sequence parallelism.
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;  ///< [outputs, inputs / size]
  at::Tensor bias;    ///< [outputs], the same on all ranks, or undefined

 private:
  TensorAxis axis_;
  RowParallelOptions options_;
};

/// An embedding table of which each rank holds a range of ids.
class VocabParallelEmbedding : public torch::nn::Module {
 public:
  VocabParallelEmbedding(std::int64_t vocabulary, std::int64_t width, const TensorAxis& axis);
  /// Shapes: ids [...] int64 -> [..., width], whole on every rank.
  at::Tensor forward(const at::Tensor& ids);

  at::Tensor weight;  ///< [vocabulary / size, width]

 private:
  TensorAxis axis_;
};

/// x weight^T + bias on one rank. If DistributedDataParallel sums the weight's gradients, backward adds to the sum
/// directly. Shapes: x [..., inputs], weight [outputs, inputs], bias [outputs] or undefined -> [..., outputs].
at::Tensor accumulating_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// x weight^T + bias, divided by outputs. The gradient of x is summed over the ranks while that of the weight is
/// computed. Under sequence parallelism only this rank's rows of x are stored, and gathered again in backward.
/// Shapes: x [..., inputs] (or its rows), weight [outputs / size, inputs], bias [outputs / size] or undefined -> [...,
/// outputs / size].
at::Tensor column_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                  const TensorAxis& axis);
/// x weight^T summed over the ranks, then + bias. Shapes: x [..., inputs / size], weight [outputs, inputs / size], bias
/// [outputs] or undefined -> [..., outputs] (or its rows).
at::Tensor row_parallel_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                               const TensorAxis& axis);

/// Looks up rows of the table `weight` [V / size, D], of which this rank holds the ids from rank * V / size.
at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight, const TensorAxis& axis);

/// Cross entropy of logits that are divided by classes. With smoothing s the target has probability 1 - s, and the
/// other K - 1 classes of the whole vocabulary share s evenly. `classes`: K; logits beyond it are padding and ignored;
/// by default all are classes. Shapes: logits [..., K / size], targets [...] int64 -> [...], float32 at least. A target
/// that no rank holds (-100) gives a finite loss, which the caller must mask.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets, const TensorAxis& axis,
                                        double label_smoothing = 0.0, std::optional<std::int64_t> classes = {});

}  // namespace accrue
