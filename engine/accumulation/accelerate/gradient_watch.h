// SPDX-License-Identifier: Apache-2.0
// Which parameters a backward reached: autograd adds to a gradient in place, which moves its version, or puts a new
// tensor there. Comparing both before and after costs two loads a parameter and needs no hook, of which each parameter
// has room for one only, and DistributedDataParallel holds it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace accrue::accelerate {

class GradientWatch {
 public:
  explicit GradientWatch(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)), before_(stamps()) {}
  bool moved() const { return stamps() != before_; }

 private:
  using Stamp = std::pair<const void*, std::uint32_t>;
  std::vector<Stamp> stamps() const {
    std::vector<Stamp> stamps;
    stamps.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) {
      const at::Tensor& grad = parameter.grad();
      if (grad.defined())
        stamps.emplace_back(grad.unsafeGetTensorImpl(), static_cast<std::uint32_t>(grad._version()));
      else
        stamps.emplace_back(nullptr, 0U);
    }
    return stamps;
  }

  std::vector<at::Tensor> parameters_;
  std::vector<Stamp> before_;
};

}  // namespace accrue::accelerate
