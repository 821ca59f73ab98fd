// SPDX-License-Identifier: Apache-2.0
// What may come between two micro-steps of a window. In a pipeline the micro-steps of a window overlap, so there is no
// moment between them: pauses, single steps, evaluation and checkpoints wait for the window's end.
#pragma once

#include <cstdint>

#include "accrue/run/accumulation_window.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// Whether a run can pause, evaluate and save between two micro-steps of a window, and not only between windows.
inline bool stops_inside_windows(const RunSpec& spec) {
  return spec.parallel.pipeline == 1;
}

/// Whether what is asked for every so many micro-steps (0: never) is due after this one. Where it waits for the end of
/// the window, it is due there once, however often the window reached it.
inline bool due_after(const RunSpec& spec, const MicroPlan& micro, std::int64_t every) {
  const std::int64_t at_end = micro.update ? micro.position + 1 : 0;
  const std::int64_t passed = stops_inside_windows(spec) ? 1 : at_end;
  return every > 0 && micro.micro_step / every > (micro.micro_step - passed) / every;
}

}  // namespace accrue
