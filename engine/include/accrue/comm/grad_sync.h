// SPDX-License-Identifier: Apache-2.0
// The seam between accumulation (which decides) and data parallelism (which reduces): neither includes the other.
// Thread: the training thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accrue {

class GradSync {
 public:
  virtual ~GradSync() = default;
  virtual bool sync_enabled() const = 0;
  virtual void set_sync_enabled(bool enabled) = 0;
  /// After a backward: reduces what has accumulated and waits. Does nothing while sync is off. Collective: the axis.
  virtual void finish() = 0;
  /// Before the forward of a micro-step that reduces: what the forward reads and changes (buffers) becomes rank 0's.
  /// Does nothing while sync is off. Collective: the axis.
  virtual void before_forward() {}
  /// How many gradients backwards have brought since construction: another number than before says that one has come,
  /// whoever ran the backward. Always 0 of one that does not count them.
  virtual std::int64_t arrivals() const { return 0; }
  /// Throws std::invalid_argument on every rank where the values differ between ranks; `what` begins the message.
  /// Collective: the axis, as many values on every rank.
  virtual void agree(const std::string& /*what*/, const std::vector<std::int64_t>& /*values*/) {}

  /// While it lives, gradients accumulate locally and nothing is reduced. Restores what was in force on every exit.
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
