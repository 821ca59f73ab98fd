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

  /// The last step on a boundary found an overflow. Off a boundary it keeps its answer.
  bool step_was_skipped() const { return skipped_; }
  /// What became of the last step().
  StepOutcome outcome() const { return outcome_; }

  std::string text() const override { return "AcceleratedOptimizer\n" + inner().text(); }

  /// A micro-step begins: what has come so far belongs to the ones before.
  void begin_micro_step() { begun_at_ = changes(); }
  /// Some of its gradients have not been applied.
  bool waits() { return waits_ || changes() != applied_at_; }
  /// The same, as it was when the gradients were saved.
  void set_waits(bool waits);
  /// Which of the Accelerator's models hold any of its parameters.
  const std::vector<bool>& models();

 private:
  /// Grows as its gradients arrive and are reduced; with backwards where no prepared model holds them.
  std::int64_t changes();
  void warn_of_gradients_that_nobody_reduces();

  AcceleratorImpl& accelerator_;
  std::vector<bool> models_;              ///< as of so many parameters
  std::vector<at::Tensor> not_prepared_;  ///< those that none of the models holds
  std::size_t known_parameters_ = 0;
  bool warned_ = false;
  bool waits_ = false;  ///< whatever has arrived: a step was asked for off a boundary
  std::int64_t applied_at_ = 0;
  std::int64_t begun_at_ = 0;
  StepOutcome outcome_ = StepOutcome::accumulated;
  bool skipped_ = false;
};

}  // namespace accrue::accelerate
