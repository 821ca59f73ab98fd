// SPDX-License-Identifier: Apache-2.0
// Interface between accumulation (which decides) and data parallelism (which reduces); neither includes the other.
// Thread: the training thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accrue {

/// A number that must be equal on all ranks.
struct NamedNumber {
  std::string name;  ///< as known to the user
  std::int64_t value = 0;
  bool operator==(const NamedNumber&) const = default;
};

class GradSync {
 public:
  virtual ~GradSync() = default;
  virtual bool sync_enabled() const = 0;
  virtual void set_sync_enabled(bool enabled) = 0;
  /// Call after a backward: reduces the accumulated gradients and waits. Does nothing while sync is off. Collective:
  /// the axis.
  virtual void finish() = 0;
  /// Call before the forward of a micro-step that reduces: copies rank 0's buffers, which the forward reads and
  /// changes. Does nothing while sync is off. Collective: the axis.
  virtual void before_forward() {}
  /// Number of gradients received since construction. A change means that a backward has run. Always 0 for
  /// implementations that do not count.
  virtual std::int64_t arrivals() const { return 0; }
  /// Throws std::invalid_argument on every rank if a number differs between ranks; the message begins with its name.
  /// Collective: the axis, with equally many numbers on every rank.
  virtual void agree(const std::vector<NamedNumber>& /*numbers*/) {}

  /// While it lives, gradients accumulate locally and nothing is reduced. Restores the previous state on every exit.
  /// Scopes nest.
  class NoSyncScope {
   public:
    explicit NoSyncScope(GradSync& sync) : sync_(sync), before_(sync.sync_enabled()) { sync_.set_sync_enabled(false); }
    ~NoSyncScope() { sync_.set_sync_enabled(before_); }
    NoSyncScope(const NoSyncScope&) = delete;
    NoSyncScope& operator=(const NoSyncScope&) = delete;

   private:
    GradSync& sync_;
    bool before_;
  };
  [[nodiscard]] NoSyncScope no_sync() { return NoSyncScope(*this); }
};

}  // namespace accrue
