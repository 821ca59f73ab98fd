// SPDX-License-Identifier: Apache-2.0
#include "optim/torch_updates.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace accrue {

void require(bool holds, const char* optimizer, const std::string& what) {
  if (!holds) throw std::invalid_argument(std::string(optimizer) + ": " + what);
}

void require_not_negative(double value, const char* optimizer, const char* option) {
  require(value >= 0.0, optimizer, std::string(option) + " is " + std::to_string(value) + "; it must not be negative");
}

void require_betas(const std::tuple<double, double>& betas, const char* optimizer) {
  for (const double beta : {std::get<0>(betas), std::get<1>(betas)})
    require(beta >= 0.0 && beta < 1.0, optimizer,
            "betas hold " + std::to_string(beta) + "; each is at least 0 and below 1");
}

void check_pair(const at::Tensor& parameter, const at::Tensor& grad, const char* optimizer) {
  const auto text = [](const at::Tensor& tensor) {
    return std::string(at::toString(tensor.scalar_type())) + " on " + tensor.device().str();
  };
  require(parameter.layout() == at::kStrided && grad.layout() == at::kStrided, optimizer,
          "sparse gradients cannot be used; make them dense, or use torch::optim::SGD");
  require(parameter.sizes() == grad.sizes() && parameter.device() == grad.device(), optimizer,
          "a gradient is " + text(grad) + " and its parameter " + text(parameter) +
              "; they must have one shape and device");
  const at::ScalarType own = parameter.scalar_type(), other = grad.scalar_type();
  const bool half = other == at::kHalf || other == at::kBFloat16;
  const bool known = own == at::kFloat || own == at::kDouble || own == at::kHalf || own == at::kBFloat16;
  require(known && (own == other || (own == at::kFloat && half)), optimizer,
          "a parameter is " + text(parameter) + " and its gradient " + text(grad) +
              "; both must be of one floating type, or the parameter float32 and the gradient float16 or bfloat16");
}

// Contiguous even if the parameter is not: the passes read and write flat memory.
at::Tensor zeros_for(const at::Tensor& parameter) {
  return at::zeros_like(parameter.detach(), at::TensorOptions(), at::MemoryFormat::Contiguous);
}

// A closure runs forward and backward, for which step()'s NoGradGuard must not hold.
at::Tensor loss_of(const torch::optim::Optimizer::LossClosure& closure) {
  if (!closure) return {};
  const at::AutoGradMode with_gradients(true);
  return closure();
}

}  // namespace accrue
