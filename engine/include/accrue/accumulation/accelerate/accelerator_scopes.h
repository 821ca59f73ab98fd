// SPDX-License-Identifier: Apache-2.0
// Accelerate's context managers as scopes: what they change is put back when they end, however they end. Made by
// Accelerator, which must outlive a JoinScope; the others put back what is still there.
#pragma once

#include <functional>
#include <utility>

namespace accrue::accelerate {

/// Runs a function when it goes, once, wherever it was moved.
class AtEnd {
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
class [[nodiscard]] AccumulateScope : public AtEnd {
 public:
  using AtEnd::AtEnd;
  explicit AccumulateScope(AtEnd end) : AtEnd(std::move(end)) {}
};

/// Its models do not reduce; what was computed meanwhile is remembered for a backward that comes later.
class [[nodiscard]] NoSyncScope : public AtEnd {
 public:
  explicit NoSyncScope(AtEnd end) : AtEnd(std::move(end)) {}
};

/// The backward inside reduces.
class [[nodiscard]] TriggerSyncScope : public AtEnd {
 public:
  using AtEnd::AtEnd;
};

/// Ranks with fewer batches join the others with empty ones.
class [[nodiscard]] JoinScope : public AtEnd {
 public:
  using AtEnd::AtEnd;
};

}  // namespace accrue::accelerate
