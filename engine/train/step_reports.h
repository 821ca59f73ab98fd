// SPDX-License-Identifier: Apache-2.0
// Reports of a plug-in library's train step beside its loss, such as an accuracy, collected from micro-steps for an
// update or an evaluation.
// Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/train_step.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

class StepReports {
 public:
  /// Adds the reports of one micro-step. A report under the loss's own name is ignored. Errors: throws
  /// std::invalid_argument for a tensor that has neither one element nor a numerator and a denominator.
  void add(const megatron::LossReport& report, std::string_view loss);
  /// Returns by name the mean over the micro-steps of all replicas since the last call, or numerators over
  /// denominators. A name that no rank reported is missing. Collective: the world.
  NamedNumbers take(const Mesh& mesh);
  void drop() { sums_.clear(); }
  /// Returns this rank's reports so far for a checkpoint, one name per line; the second function restores them. It
  /// returns false and changes nothing if the text is not from text().
  std::string text() const;
  bool restore(const std::string& text);

 private:
  std::map<std::string, at::Tensor> sums_;  ///< [2] in float64: numerator and denominator
};

}  // namespace accrue
