// SPDX-License-Identifier: Apache-2.0
// Accelerate's context managers as scopes: what they change is put back when they end, however they end. Made by
// Accelerator, which must outlive a JoinScope; the others put back what is still there. Thread: the training thread.
#pragma once

#include <functional>
#include <utility>

namespace accrue::accelerate {

/// Runs a function when it goes, once, wherever it was moved.
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
/// Its models do not reduce; what was computed meanwhile is remembered for a backward that comes later.
using NoSyncScope = AtEnd;
/// The backward inside reduces.
using TriggerSyncScope = AtEnd;
/// Ranks with fewer batches join the others with empty ones.
using JoinScope = AtEnd;

}  // namespace accrue::accelerate
