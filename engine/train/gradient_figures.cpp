// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_figures.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>

#include <cmath>

namespace accrue {

at::Tensor summed(Training& training, at::Tensor flat) {
  training.mesh.data().all_reduce(flat);
  return flat;
}

double summed(Training& training, double value) {
  return sum_over_ranks(training.mesh.data(), value);
}

double largest(Training& training, double value) {
  at::Tensor number = at::empty({1}, at::kDouble);
  number.fill_(value);
  training.mesh.data().all_reduce(number, Reduce::max);
  return number.item<double>();
}

// sqrt(x . x), in the type of x: callers give float64.
double length_of(const at::Tensor& flat) {
  return std::sqrt(at::dot(flat, flat).item<double>());
}

// |found - wanted| / |wanted|.
double relative_difference(const at::Tensor& found, const at::Tensor& wanted) {
  const double difference = length_of(found - wanted);
  const double size = length_of(wanted);
  return size > 0.0 ? difference / size : difference > 0.0 ? HUGE_VAL : 0.0;
}

}  // namespace accrue
