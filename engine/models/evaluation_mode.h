// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

namespace accrue {

/// Scope without dropout; restores the mode at its end.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module) : module_(module), before_(module.is_training()) {
    module_.eval();
  }
  ~EvaluationMode() { module_.train(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool before_;
};

}  // namespace accrue
