// SPDX-License-Identifier: Apache-2.0
// Accelerate's context managers as scopes, which restore their changes in any case when they end. Made by Accelerator,
// which must outlive a JoinScope; the others restore only what still exists. Thread: the training thread.
#pragma once

#include <functional>
#include <utility>

namespace accrue::accelerate {

/// Runs a function once on destruction, wherever it was moved.
class [[nodiscard]] AtEnd {
 public:
  explicit AtEnd(std::function<void()> call) : call_(std::move(call)) {}
  AtEnd(AtEnd&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  AtEnd& operator=(AtEnd&&) = delete;
  ~AtEnd() {
    if (call_) call_();
  }

 private:
  std::function<void()> call_;
};

/// One micro-step. Off a boundary its models do not reduce.
using AccumulateScope = AtEnd;
/// Its models do not reduce. What was computed meanwhile is remembered for a later backward.
using NoSyncScope = AtEnd;
/// The backward inside reduces.
using TriggerSyncScope = AtEnd;
/// Ranks with fewer batches join the others with empty ones.
using JoinScope = AtEnd;

}  // namespace accrue::accelerate
