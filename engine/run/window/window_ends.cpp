// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/window_ends.h"

#include "window_walk.h"

namespace accrue {

std::optional<MicroPlan> next_update(AccumulationWindow& window) {
  while (const auto micro = window.next()) {
    if (micro->update) return micro;
    // A window's size is known from its first micro-step, so all but its last can be skipped.
    const std::int64_t between = micro->window_size - micro->position - 2;
    if (between < 1) continue;
    WindowWalk walk(window.shape(), window.position());
    walk.to({.per_micro_step = 1}, micro->micro_step + between);
    window.restore(walk.at());
  }
  return std::nullopt;
}

}  // namespace accrue
