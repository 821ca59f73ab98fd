// SPDX-License-Identifier: Apache-2.0
// Actions between two micro-steps of a window. In a pipeline the micro-steps of a window overlap, so there is no moment
// between them: pauses, single steps, evaluation and checkpoints wait for the window's end.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// Whether a run can pause, evaluate and save between two micro-steps of a window.
inline bool stops_inside_windows(const RunSpec& spec) {
  return spec.parallel.pipeline == 1;
}

/// Whether an action with an interval in micro-steps (0: never) is due after this one. If it must wait for the end of
/// the window, it is due there once, even if the window reached it several times.
inline bool due_after(const RunSpec& spec, const MicroPlan& micro, std::int64_t every) {
  const std::int64_t at_end = micro.update ? micro.position + 1 : 0;
  const std::int64_t passed = stops_inside_windows(spec) ? 1 : at_end;
  return every > 0 && micro.micro_step / every > (micro.micro_step - passed) / every;
}

}  // namespace accrue
