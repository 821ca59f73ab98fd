// SPDX-License-Identifier: Apache-2.0
// Begin and end times of computations. A CPU is done when the call returns. A device's work is queued in advance: its
// times are events in its queue, which can be read once the device has passed them.
// Thread: training.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <memory>

namespace accrue {

class ComputeClock {
 public:
  /// A point in the order of the device's work.
  struct Mark {
    std::int64_t host_ns = 0;           ///< when it was queued
    std::shared_ptr<c10::Event> event;  ///< none on a CPU
  };

  explicit ComputeClock(at::Device device) : device_(device) {}

  Mark mark();
  /// Waits for the device. Marks made so far are readable until the next call of this.
  void settle();
  /// CLOCK_MONOTONIC.
  std::int64_t ns(const Mark& mark) const;

 private:
  std::shared_ptr<c10::Event> recorded() const;

  at::Device device_;
  Mark settled_;  ///< its host_ns is the time when the device passed it
};

}  // namespace accrue
