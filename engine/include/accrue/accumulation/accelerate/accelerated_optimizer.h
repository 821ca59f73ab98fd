// SPDX-License-Identifier: Apache-2.0
// AcceleratedOptimizer: step() and zero_grad() act on a boundary. Source: Hugging Face Accelerate 1.15,
// AcceleratedOptimizer, without its hazard: a zero_grad() before the backward of a boundary micro-step does not throw
// the window away. Thread: the training thread.
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
  /// Made by Accelerator::prepare, of whose models it asks.
  AcceleratedOptimizer(const std::shared_ptr<BaseOptimizer>& inner, AcceleratorImpl& accelerator);

  /// The Accelerator's backward(): divides by N.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// On a boundary steps the inner optimizer, with fp16 through the scaler; else accumulated. Gradients of a prepared
  /// model that no backward has reduced are reduced first: those of a plain loss.backward(), and those of a model that
  /// the boundary's backward did not reach. Collective then, and with fp16: the data axis. Gradients of parameters that
  /// no prepared model holds stay this rank's own, as the original's do: on several ranks the first step that meets one
  /// warns.
  StepOutcome step(const Closure& closure = {}) override;
  /// Clears gradients that were applied, whatever the flag, and on a boundary also those of a complete window.
  /// Gradients of a window that is still open stay. The replay switch zero_before_backward goes by the flag alone.
  void zero_grad(bool set_to_none = true) override;

  /// The last step on a boundary found an overflow. Off a boundary the answer is still that of the last one.
  bool step_was_skipped() const { return skipped_; }
  /// What became of the last step().
  StepOutcome outcome() const { return outcome_; }

  std::string text() const override { return "AcceleratedOptimizer\n" + inner().text(); }

  /// A micro-step begins: the gradients that have come so far are those of earlier ones.
  void begin_micro_step() { begun_at_ = changes(); }
  /// Gradients of its parameters have come that no update has applied yet.
  bool waits() { return waits_ || changes() != applied_at_; }
  /// Restores waits() for gradients that were loaded: as it was when they were saved.
  void set_waits(bool waits);
  /// For each of the Accelerator's models, whether it holds any of this optimizer's parameters.
  const std::vector<bool>& models();

 private:
  /// A number that grows whenever gradients of its parameters arrive or are reduced. Where no prepared model holds any
  /// of them, the number of backwards.
  std::int64_t changes();
  void warn_of_gradients_that_nobody_reduces();

  AcceleratorImpl& accelerator_;
  std::vector<bool> models_;              ///< what models() found for known_parameters_
  std::vector<at::Tensor> not_prepared_;  ///< those that none of the models holds
  std::size_t known_parameters_ = 0;
  bool warned_ = false;
  bool waits_ = false;           ///< even if nothing has come since: a step was asked for off a boundary
  std::int64_t applied_at_ = 0;  ///< changes() at the last update
  std::int64_t begun_at_ = 0;    ///< changes() when the micro-step began
  StepOutcome outcome_ = StepOutcome::accumulated;
  bool skipped_ = false;
};

}  // namespace accrue::accelerate
