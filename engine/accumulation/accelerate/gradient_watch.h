// SPDX-License-Identifier: Apache-2.0
// Whether an optimizer's gradients are other than they were when somebody last looked: autograd adds to a gradient in
// place, which moves its version, or puts a new tensor there. Comparing costs two loads a parameter, and sees what no
// hook would: gradients that the caller made by himself. One that is gone brought nothing and does not count.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace accrue::accelerate {

class GradientWatch {
 public:
  /// Since the last call, or since construction, a gradient has moved. What is found now counts as seen.
  bool moved(const torch::optim::Optimizer& optimizer) {
    bool any = false;
    std::size_t at = 0;
    for (const auto& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        if (at == stamps_.size()) stamps_.emplace_back();
        const Stamp now = stamp_of(parameter.grad());
        any = any || (now.first != nullptr && now != stamps_[at]);
        stamps_[at++] = now;
      }
    }
    return any;
  }

 private:
  using Stamp = std::pair<const void*, std::uint32_t>;
  static Stamp stamp_of(const at::Tensor& grad) {
    if (!grad.defined()) return {};
    return {grad.unsafeGetTensorImpl(), static_cast<std::uint32_t>(grad._version())};
  }

  std::vector<Stamp> stamps_;
};

}  // namespace accrue::accelerate
