// SPDX-License-Identifier: Apache-2.0
// Wrapped object, in any form of ownership: LibTorch's own object, one of ours by reference, or a shared one. The
// caller keeps a referenced object alive as long as the wrapper; the wrapper keeps a shared one. Also the base of all
// wrappers, which forwards calls that a wrapper does not override. Thread: the training thread.
#pragma once

#include <concepts>
#include <iosfwd>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/accumulation/base_scheduler.h"

namespace accrue {

/// Errors: throws std::invalid_argument if a shared object is empty.
template <typename Base>
class AnyOf {
 public:
  AnyOf(Base& object) : held_(std::shared_ptr<void>{}, &object) {}
  template <std::derived_from<Base> T>
  AnyOf(std::shared_ptr<T> object) : held_(std::move(object)) {
    if (!held_) throw std::invalid_argument("there is nothing to wrap: the pointer is empty");
  }
  const std::shared_ptr<Base>& shared() const { return held_; }

 private:
  std::shared_ptr<Base> held_;
};

class AnyOptimizer : public AnyOf<BaseOptimizer> {
 public:
  using AnyOf::AnyOf;
  AnyOptimizer(torch::optim::Optimizer& optimizer) : AnyOf(wrap(optimizer)) {}
};

/// LibTorch's own schedulers come through wrap(scheduler, optimizer), which names the optimizer that they move.
using AnyScheduler = AnyOf<BaseScheduler>;

/// Shapes: a loss is [].
class OptimizerWrapper : public BaseOptimizer {
 public:
  explicit OptimizerWrapper(const AnyOptimizer& inner) : inner_(inner.shared()) {}

  void backward(const at::Tensor& loss, BackwardOptions options = {}) override { inner_->backward(loss, options); }
  StepOutcome step(const Closure& closure = {}) override { return inner_->step(closure); }
  void zero_grad(bool set_to_none = true) override { inner_->zero_grad(set_to_none); }
  StateDict state_dict() const override { return inner_->state_dict(); }
  void load_state_dict(const StateDict& state) override { inner_->load_state_dict(state); }
  std::string text() const override { return inner_->text(); }
  torch::optim::Optimizer& torch() override { return inner_->torch(); }
  using BaseOptimizer::torch;

  BaseOptimizer& inner() { return *inner_; }
  const BaseOptimizer& inner() const { return *inner_; }

 private:
  std::shared_ptr<BaseOptimizer> inner_;
};

class SchedulerWrapper : public BaseScheduler {
 public:
  explicit SchedulerWrapper(const AnyScheduler& inner) : inner_(inner.shared()) {}

  void step(std::optional<std::int64_t> epoch = std::nullopt) override { inner_->step(epoch); }
  std::vector<double> get_last_lr() const override { return inner_->get_last_lr(); }
  std::optional<std::int64_t> total_steps() const override { return inner_->total_steps(); }
  StateDict state_dict() const override { return inner_->state_dict(); }
  void load_state_dict(const StateDict& state) override { inner_->load_state_dict(state); }

  std::string text() const override { return inner_->text(); }

  std::vector<double> get_lr() const { return get_last_lr(); }
  /// One line per parameter group.
  void print_lr(std::ostream& out) const;
  BaseScheduler& inner() { return *inner_; }
  const BaseScheduler& inner() const { return *inner_; }

 private:
  std::shared_ptr<BaseScheduler> inner_;
};

}  // namespace accrue
