// SPDX-License-Identifier: Apache-2.0
// Modules that only hold parameters, under PyTorch's names; the arithmetic is in functions.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

namespace accrue {

/// weight [outputs, inputs] and bias [outputs] (undefined without one).
struct Affine : torch::nn::Module {
  Affine(std::int64_t inputs, std::int64_t outputs, bool with_bias) {
    weight = register_parameter("weight", at::zeros({outputs, inputs}));
    if (with_bias) bias = register_parameter("bias", at::zeros({outputs}));
  }
  at::Tensor weight;
  at::Tensor bias;
};

/// weight [rows, width].
struct Embedding : torch::nn::Module {
  Embedding(std::int64_t rows, std::int64_t width) { weight = register_parameter("weight", at::zeros({rows, width})); }
  at::Tensor weight;
};

/// weight [width] of ones and bias [width] of zeros, which an RMS norm does not have.
struct Norm : torch::nn::Module {
  explicit Norm(std::int64_t width, bool with_bias = true) {
    weight = register_parameter("weight", at::ones({width}));
    if (with_bias) bias = register_parameter("bias", at::zeros({width}));
  }
  at::Tensor weight;
  at::Tensor bias;
};

}  // namespace accrue
