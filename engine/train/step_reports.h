// SPDX-License-Identifier: Apache-2.0
// What the train step of a plug-in library reports beside its loss, such as an accuracy, from micro-steps to an update
// or an evaluation.
// Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/train_step.h"
#include "accrue/run/run_event.h"

namespace accrue {

class StepReports {
 public:
  /// One micro-step's. A report under the loss's own name is left out. Errors: throws std::invalid_argument for a
  /// tensor that has neither one element nor a numerator and a denominator.
  void add(const megatron::LossReport& report, std::string_view loss);
  /// By name, the mean over the micro-steps of all replicas since the last call, or numerators over denominators. A
  /// name that no rank reported is not there. Collective: the world.
  NamedNumbers take(const Mesh& mesh);
  void drop() { sums_.clear(); }
  /// What this rank has so far, for a checkpoint: a line a name; and the same back. False, and nothing is changed,
  /// where the text is none of text()'s.
  std::string text() const;
  bool restore(const std::string& text);

 private:
  std::map<std::string, at::Tensor> sums_;  ///< [2] in float64: numerator and denominator
};

}  // namespace accrue
