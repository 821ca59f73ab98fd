// SPDX-License-Identifier: Apache-2.0
// What a wrapper is made over, however the caller holds it: LibTorch's own object, one of ours by reference, or one of
// ours shared. By reference, the caller keeps it alive as long as the wrapper; shared, the wrapper does.
#pragma once

#include <concepts>
#include <memory>
#include <stdexcept>
#include <utility>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/accumulation/base_scheduler.h"

namespace accrue {

/// Errors: throws std::invalid_argument where a shared one is empty.
class AnyOptimizer {
 public:
  AnyOptimizer(torch::optim::Optimizer& optimizer) : held_(wrap(optimizer)) {}
  AnyOptimizer(BaseOptimizer& optimizer) : held_(std::shared_ptr<void>{}, &optimizer) {}
  template <std::derived_from<BaseOptimizer> T>
  AnyOptimizer(std::shared_ptr<T> optimizer) : held_(std::move(optimizer)) {
    if (!held_) throw std::invalid_argument("there is no optimizer: the pointer is empty");
  }
  const std::shared_ptr<BaseOptimizer>& shared() const { return held_; }

 private:
  std::shared_ptr<BaseOptimizer> held_;
};

/// LibTorch's own schedulers come through wrap(scheduler, optimizer), which says what they move.
class AnyScheduler {
 public:
  AnyScheduler(BaseScheduler& scheduler) : held_(std::shared_ptr<void>{}, &scheduler) {}
  template <std::derived_from<BaseScheduler> T>
  AnyScheduler(std::shared_ptr<T> scheduler) : held_(std::move(scheduler)) {
    if (!held_) throw std::invalid_argument("there is no scheduler: the pointer is empty");
  }
  const std::shared_ptr<BaseScheduler>& shared() const { return held_; }

 private:
  std::shared_ptr<BaseScheduler> held_;
};

}  // namespace accrue
