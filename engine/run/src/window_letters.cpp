// SPDX-License-Identifier: Apache-2.0
// A plan as letters, in the order of each dialect's own loop: b backward, B backward that reduces, S step, L schedule,
// Z zero, | end of the loader. llm zeroes before its schedule moves; mmengine's wrapper steps and zeroes, and its hook
// moves the schedule after every micro-step; the others step, move the schedule and then clear.
#include <string>

#include "accrue/run/accumulation_window.h"

namespace accrue {
namespace {

void append_boundary(Dialect dialect, const MicroPlan& micro, std::string& letters) {
  const bool schedule = micro.schedule_ticks > 0;
  const bool zero_first = dialect == Dialect::llm || dialect == Dialect::mmengine;
  if (micro.update) letters += 'S';
  if (micro.update && zero_first) letters += 'Z';
  if (schedule) letters += 'L';
  if (micro.update && !zero_first) letters += 'Z';
}

}  // namespace

std::string window_letters(Dialect dialect, const WindowShape& shape, std::int64_t max_micro_steps) {
  std::string letters;
  for (const MicroPlan& micro : preview_windows(shape, max_micro_steps)) {
    const bool begins_window = micro.position == 0 && micro.micro_step > 1;
    if (begins_window) letters += ' ';
    letters += micro.sync ? 'B' : 'b';
    append_boundary(dialect, micro, letters);
    const bool drops_rest =
        micro.epoch_ends && micro.batch + 1 < shape.batches_per_epoch && shape.knobs.tail != EpochTail::pad_repeat;
    if (drops_rest) letters += ' ';
    if (micro.epoch_ends) letters += '|';
  }
  return letters;
}

}  // namespace accrue
