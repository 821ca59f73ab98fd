// SPDX-License-Identifier: Apache-2.0
// Source of the linear rule: PyTorch's Kaiming-uniform default. Its bound sqrt(6 / ((1 + a^2) inputs)) with a = sqrt(5)
// is 1 / sqrt(inputs).
#include "models/weight_init.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "accrue/run/cost/shard_layout.h"

namespace accrue {

namespace {

constexpr double normal_std = 0.02;  // the GPT-2 report's

}  // namespace

WeightSource::WeightSource(std::uint64_t seed) : generator_(at::detail::createCPUGenerator(seed)) {}

void WeightSource::uniform(at::Tensor& weight, double bound) {
  const at::NoGradGuard no_grad;
  weight.uniform_(-bound, bound, generator_);
}

void WeightSource::normal(at::Tensor& weight, double std) {
  const at::NoGradGuard no_grad;
  weight.normal_(0.0, std, generator_);
}

void init_linear(WeightSource& source, WeightInit rule, at::Tensor& weight, at::Tensor& bias) {
  if (rule == WeightInit::normal) {
    source.normal(weight, normal_std);
  } else if (rule == WeightInit::torch) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(weight.size(1)));
    source.uniform(weight, bound);
    if (bias.defined()) source.uniform(bias, bound);
  }
}

// Packed queries, keys and values: whole [3 D, D] -> box [3, D / t, D] -> [3 D / t, D]. A token table: this
// rank's V / t rows, zeros beyond the vocabulary.
at::Tensor part_of(const at::Tensor& whole, const ParameterShare& share) {
  at::Tensor box = whole.view(share.whole);
  for (std::size_t dim = 0; dim < share.whole.size(); ++dim)
    box = box.narrow(static_cast<std::int64_t>(dim), share.offset[dim], share.extent[dim]);
  if (!share.padded) return box.reshape(share.shape);
  at::Tensor rows = at::zeros(share.shape, box.options());
  rows.narrow(0, 0, box.size(0)).copy_(box);
  return rows;
}

void fill_with_values(const ModelSpec& model, const ModelShare& share, std::vector<at::Tensor> parameters) {
  const auto shapes = parameter_shapes(model, share.tensor_ranks);
  std::int64_t wanted = 0;
  for (const ParameterShape& shape : shapes) wanted += shape.numel();
  if (wanted != std::ssize(model.values)) {
    throw std::invalid_argument("model.values has " + std::to_string(model.values.size()) + " numbers, the model has " +
                                std::to_string(wanted) + " parameters: give one for each, weight before bias");
  }
  const at::NoGradGuard no_grad;
  const auto shares = parameter_shares(model, share);
  const double* values = model.values.data();
  std::size_t own = 0;
  for (const ParameterShape& shape : shapes) {
    const auto count = static_cast<std::size_t>(shape.numel());
    if (own < shares.size() && shares[own].name == shape.name) {
      // In float64, so that a float64 model keeps every digit.
      const at::Tensor given = at::tensor(at::ArrayRef<double>(values, count), at::kDouble).view(shape.shape);
      parameters[own].copy_(part_of(given, shares[own]));
      ++own;
    }
    values += count;
  }
}

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return at::kFloat;
    case Dtype::float64:
      return at::kDouble;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float16:
      return at::kHalf;
  }
  throw std::invalid_argument("model.dtype is not a number type that this engine supports");
}

}  // namespace accrue
