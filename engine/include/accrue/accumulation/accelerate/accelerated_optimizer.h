// SPDX-License-Identifier: Apache-2.0
// AcceleratedOptimizer: step() and zero_grad() act on a boundary. Source: Hugging Face Accelerate 1.15,
// AcceleratedOptimizer. Unlike the original, a zero_grad() before the backward of a boundary micro-step does not
// discard the window. Thread: the training thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "accrue/accumulation/any_optimizer.h"

namespace accrue::accelerate {

struct AcceleratorImpl;

class AcceleratedOptimizer final : public OptimizerWrapper {
 public:
  /// Made by Accelerator::prepare, whose models it uses.
  AcceleratedOptimizer(const std::shared_ptr<BaseOptimizer>& inner, AcceleratorImpl& accelerator);

  /// Does the Accelerator's backward(), which divides by N.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// On a boundary, steps the inner optimizer, with fp16 through the scaler; otherwise returns accumulated. First
  /// reduces gradients of a prepared model that no backward has reduced: those of a plain loss.backward(), and those of
  /// a model that the boundary's backward did not reach. It is then collective, as with fp16: the data axis. Gradients
  /// of parameters outside all prepared models stay local to this rank, as in the original; on several ranks the first
  /// step that meets one warns.
  StepOutcome step(const Closure& closure = {}) override;
  /// Clears gradients that were applied, whatever the flag, and on a boundary also those of a complete window.
  /// Gradients of an open window stay. The replay switch zero_before_backward follows the flag alone.
  void zero_grad(bool set_to_none = true) override;

  /// Whether the last step on a boundary found an overflow. Off a boundary the value does not change.
  bool step_was_skipped() const { return skipped_; }
  /// Result of the last step().
  StepOutcome outcome() const { return outcome_; }

  std::string text() const override { return "AcceleratedOptimizer\n" + inner().text(); }

  /// Begins a micro-step: gradients that have arrived so far belong to earlier ones.
  void begin_micro_step() { begun_at_ = changes(); }
  /// Whether gradients of its parameters have arrived that no update has applied yet.
  bool waits() { return waits_ || changes() != applied_at_; }
  /// Restores the saved value of waits() for loaded gradients.
  void set_waits(bool waits);
  /// For each of the Accelerator's models, whether it holds any of this optimizer's parameters.
  const std::vector<bool>& models();

 private:
  /// Returns a number that grows whenever gradients of its parameters arrive or are reduced. If no prepared model holds
  /// any of them, it is the number of backwards.
  std::int64_t changes();
  void warn_of_gradients_that_nobody_reduces();

  AcceleratorImpl& accelerator_;
  std::vector<bool> models_;              ///< result of models() for known_parameters_
  std::vector<at::Tensor> not_prepared_;  ///< parameters outside all models
  std::size_t known_parameters_ = 0;
  bool warned_ = false;
  bool waits_ = false;           ///< true even if nothing has arrived since: a step was called off a boundary
  std::int64_t applied_at_ = 0;  ///< changes() at the last update
  std::int64_t begun_at_ = 0;    ///< changes() when the micro-step began
  StepOutcome outcome_ = StepOutcome::accumulated;
  bool skipped_ = false;
};

}  // namespace accrue::accelerate
