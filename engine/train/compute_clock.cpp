// SPDX-License-Identifier: Apache-2.0
// A device runs behind the host, so an event in its stream marks the end of a computation. settle() waits once and
// links the two clocks: host time of a mark = host time of the last event - elapsed(mark, last event).
#include "train/compute_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "train/reporter.h"

namespace accrue {

std::shared_ptr<c10::Event> ComputeClock::recorded() const {
  const c10::impl::VirtualGuardImpl guard(device_.type());
  auto event = std::make_shared<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // records the time
  event->record(guard.getStream(device_));
  return event;
}

ComputeClock::Mark ComputeClock::mark() {
  Mark mark{.host_ns = monotonic_ns(), .event = nullptr};
  if (!device_.is_cpu()) mark.event = recorded();
  return mark;
}

void ComputeClock::settle() {
  if (device_.is_cpu()) return;
  settled_.event = recorded();
  settled_.event->synchronize();
  settled_.host_ns = monotonic_ns();
}

std::int64_t ComputeClock::ns(const Mark& mark) const {
  if (!mark.event) return mark.host_ns;
  constexpr double ns_per_ms = 1e6;
  return settled_.host_ns - static_cast<std::int64_t>(mark.event->elapsedTime(*settled_.event) * ns_per_ms);
}

}  // namespace accrue
