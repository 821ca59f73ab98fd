// SPDX-License-Identifier: Apache-2.0
// Weights by a formula, which a reference in another language repeats, and what a model's gradients are held against.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <QTest>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "accrue/run/cost/shard_layout.h"

namespace accrue::test {

/// Number i of parameter k is 0.3 sin(1.3 i + 0.37 k); of a norm's weight 1 + 0.03 sin(...).
inline void fill_by_formula(torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  double k = 0;
  for (const auto& named : model.named_parameters()) {
    at::Tensor parameter = named.value();
    const at::Tensor wave = at::arange(parameter.numel(), at::kDouble).mul(1.3).add(0.37 * k++).sin().mul(0.3);
    const bool norm = named.key().find("norm") != std::string::npos && named.key().ends_with("weight");
    parameter.copy_((norm ? wave.mul(0.1).add(1.0) : wave).view(parameter.sizes()));
  }
}

inline at::Tensor rows(const std::vector<std::vector<std::int64_t>>& values) {
  std::vector<at::Tensor> all;
  for (const auto& row : values) all.push_back(at::tensor(row, at::kLong));
  return at::stack(all);
}

inline std::vector<at::Tensor> gradients_of(const torch::nn::Module& model) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : model.parameters()) all.push_back(parameter.grad());
  return all;
}

inline at::Tensor gradient_length(const torch::nn::Module& model) {
  at::Tensor squares = at::zeros({}, at::kDouble);
  for (const at::Tensor& gradient : gradients_of(model)) squares += gradient.square().sum();
  return squares.sqrt();
}

/// Largest difference between a parameter's gradient and central differences, over a few numbers of each parameter.
inline double off_from_differences(torch::nn::Module& model, const std::function<at::Tensor()>& loss) {
  model.zero_grad();
  loss().backward();
  double most = 0.0;
  for (const at::Tensor& parameter : model.parameters()) {
    const at::NoGradGuard no_grad;
    at::Tensor numbers = parameter.view({-1});
    const at::Tensor gradient = parameter.grad().reshape({-1});
    for (const std::int64_t i : {std::int64_t{0}, numbers.numel() / 2, numbers.numel() - 1}) {
      constexpr double step = 1e-5;
      const double value = numbers[i].item<double>();
      numbers[i] = value + step;
      const double above = loss().item<double>();
      numbers[i] = value - step;
      const double below = loss().item<double>();
      numbers[i] = value;
      most = std::max(most, std::abs((above - below) / (2 * step) - gradient[i].item<double>()));
    }
  }
  return most;
}

/// Fails the test function unless a tensor holds these numbers, to rounding.
#define VERIFY_NUMBERS(holder, ...)                                                                                 \
  do {                                                                                                              \
    const at::Tensor found = (holder).detach().reshape({-1});                                                       \
    const at::Tensor wanted = at::tensor(std::vector<double> __VA_ARGS__, at::kDouble);                             \
    QCOMPARE(found.numel(), wanted.numel());                                                                        \
    const double apart = (found - wanted).abs().max().item<double>();                                               \
    QVERIFY2(apart < 2e-13 * std::max(1.0, wanted.abs().max().item<double>()), qPrintable(QString::number(apart))); \
  } while (false)

#define VERIFY_GRADIENTS(model, ...)                                               \
  do {                                                                             \
    const double apart = accrue::test::off_from_differences((model), __VA_ARGS__); \
    QVERIFY2(apart < 1e-8, qPrintable(QString::number(apart)));                    \
  } while (false)

/// Names and shapes of a model's parameters are the planner's.
#define VERIFY_PLANNED(model, spec)                               \
  do {                                                            \
    const auto planned = accrue::parameter_shapes(spec);          \
    const auto named = (model).named_parameters();                \
    QCOMPARE(named.size(), planned.size());                       \
    for (std::size_t i = 0; i < planned.size(); ++i) {            \
      QCOMPARE(named[i].key(), planned[i].name);                  \
      QCOMPARE(named[i].value().sizes().vec(), planned[i].shape); \
    }                                                             \
  } while (false)

}  // namespace accrue::test
