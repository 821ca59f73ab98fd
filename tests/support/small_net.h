// SPDX-License-Identifier: Apache-2.0
// A small network and its batches, for tests of DistributedDataParallel: numbers that depend on seeds alone.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>

#include "accrue/parallel/distributed_data_parallel.h"

namespace accrue::test {

/// Values that depend on the seed alone, so that no test draws on a global generator.
inline at::Tensor numbers(at::IntArrayRef shape, std::uint32_t seed, at::ScalarType dtype) {
  at::Tensor result = at::empty(shape, at::kDouble);
  double* value = result.mutable_data_ptr<double>();
  std::uint32_t state = seed * 2654435761U + 1U;
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    state = state * 1664525U + 1013904223U;
    value[i] = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
  }
  return result.to(dtype);
}

/// Two layers; `spare` is not used in the loss, `head` shares the first layer's weight on request.
struct Net : torch::nn::Module {
  explicit Net(std::uint32_t seed, at::ScalarType dtype = at::kDouble, std::int64_t width = 37) {
    in = register_parameter("in", numbers({width, 5}, seed, dtype));
    in_bias = register_parameter("in_bias", numbers({width}, seed + 1, dtype));
    out = register_parameter("out", numbers({3, width}, seed + 2, dtype));
    out_bias = register_parameter("out_bias", numbers({3}, seed + 3, dtype));
    spare = register_parameter("spare", numbers({11}, seed + 4, dtype));
    count = register_buffer("count", at::full({1}, static_cast<double>(seed), at::kLong));
  }
  at::Tensor forward(const at::Tensor& x_BI) {
    return at::linear(at::tanh(at::linear(x_BI, in, in_bias)), out, out_bias);
  }
  at::Tensor in, in_bias, out, out_bias, spare, count;
};

inline constexpr std::int64_t kSamples = 32;  // of one update, whatever the world and the number of micro-steps

inline at::Tensor batch_x(std::int64_t update, at::ScalarType dtype) {
  return numbers({kSamples, 5}, 1000U + static_cast<std::uint32_t>(update), dtype);
}
inline at::Tensor batch_y(std::int64_t update, at::ScalarType dtype) {
  return numbers({kSamples, 3}, 2000U + static_cast<std::uint32_t>(update), dtype);
}

/// Sum of squares over the samples [begin, begin + n).
inline at::Tensor loss_of(Net& net, std::int64_t update, std::int64_t begin, std::int64_t n) {
  const auto dtype = net.in.scalar_type();
  const at::Tensor error =
      net.forward(batch_x(update, dtype).narrow(0, begin, n)) - batch_y(update, dtype).narrow(0, begin, n);
  return error.square().sum();
}

inline LaunchBuckets launch_named(const std::string& name) {
  return name == "when_ready" ? LaunchBuckets::when_ready : LaunchBuckets::at_finish;
}

inline at::Tensor loss_with_spare(Net& net, std::int64_t sample) {
  return loss_of(net, 0, sample, 1) + 0 * net.spare.sum();
}

}  // namespace accrue::test
