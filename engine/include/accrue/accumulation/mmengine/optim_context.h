// SPDX-License-Identifier: Apache-2.0
// OptimContext: the C++ form of `with optim_wrapper.optim_context(model):`, a scope around the forward of one
// micro-step. The scopes that it holds end with it, in reverse order. Thread: the training thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace accrue::mmengine {

class [[nodiscard]] OptimContext {
 public:
  OptimContext() = default;
  OptimContext(OptimContext&&) noexcept = default;
  OptimContext& operator=(OptimContext&&) = delete;
  ~OptimContext() {
    while (!held_.empty()) held_.pop_back();
  }

  /// Keeps any scope object alive until this one ends.
  void hold(std::shared_ptr<void> scope) { held_.push_back(std::move(scope)); }
  bool empty() const { return held_.empty(); }

 private:
  std::vector<std::shared_ptr<void>> held_;
};

}  // namespace accrue::mmengine
