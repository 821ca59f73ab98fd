// SPDX-License-Identifier: Apache-2.0
// A plan as letters, in the order of each dialect's own loop: b backward, B backward that reduces, S step, L schedule,
// Z zero, | end of the loader. llm zeroes before its schedule advances. mmengine's wrapper steps and zeroes, and its
// hook advances the schedule after every micro-step. The others step, advance the schedule and then clear.
#include <string>

#include "accrue/run/window/accumulation_window.h"

namespace accrue {

std::string micro_step_letters(Dialect dialect, const MicroPlan& micro) {
  std::string letters(1, micro.sync ? 'B' : 'b');
  const bool schedule = micro.schedule_ticks > 0;
  const bool zero_first = dialect == Dialect::llm || dialect == Dialect::mmengine;
  if (micro.update) letters += 'S';
  if (micro.update && zero_first) letters += 'Z';
  if (schedule) letters += 'L';
  if (micro.update && !zero_first) letters += 'Z';
  return letters;
}

std::string window_letters(Dialect dialect, const WindowShape& shape, std::int64_t max_micro_steps) {
  std::string letters;
  for (const MicroPlan& micro : preview_windows(shape, max_micro_steps)) {
    const bool begins_window = micro.position == 0 && micro.micro_step > 1;
    if (begins_window) letters += ' ';
    letters += micro_step_letters(dialect, micro);
    if (micro.dropped_after > 0) letters += ' ';
    if (micro.epoch_ends) letters += '|';
  }
  return letters;
}

}  // namespace accrue
