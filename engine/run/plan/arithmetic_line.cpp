// SPDX-License-Identifier: Apache-2.0
// The arithmetic line: the contents of an update in one sentence that holds for every dialect and tail policy. Numbers
// per epoch come from walking the window over one, two and three epochs, not from a separate formula.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/name_of.h"
#include "accrue/run/plan/last_batches.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/window/evaluation_progress.h"

namespace accrue {

namespace {

/// Whether windows have different N.
bool has_scheduled_length(const RunPlan& plan) {
  return plan.window.rampup || (has_length_schedule(plan.knobs.group_length) && !plan.window.length_schedule.empty());
}

// Minimum and maximum micro-steps of a full window in this run.
std::pair<std::int64_t, std::int64_t> lengths(const RunPlan& plan) {
  if (!has_scheduled_length(plan)) return {plan.window.steps, plan.window.steps};
  if (const auto& ramp = plan.window.rampup) {
    const std::int64_t last = std::max<std::int64_t>(plan.totals.samples - 1, 0);
    return {batch_at(*ramp, 0) / plan.window.samples.each, batch_at(*ramp, last) / plan.window.samples.each};
  }
  const bool by_update = plan.knobs.group_length == GroupLength::by_update;
  const std::int64_t end = by_update ? plan.totals.updates : plan.totals.epochs_started;
  const auto& changes = plan.window.length_schedule;
  std::int64_t least = plan.window.steps;
  std::int64_t most = plan.window.steps;
  if (changes.front().from <= 0) least = most = changes.front().steps;
  for (const LengthChange& change : changes) {
    if (change.from > 0 && change.from >= end) break;
    least = std::min(least, change.steps);
    most = std::max(most, change.steps);
  }
  return {least, most};
}

std::string range(std::int64_t least, std::int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

std::string batch_part(const RunPlan& plan) {
  const auto [least, most] = lengths(plan);
  const std::int64_t micro = plan.order.micro_batch * plan.order.world;
  const bool short_epoch = plan.window.batches_per_epoch < least && plan.knobs.tail == EpochTail::flush;
  const bool never_full = short_epoch || plan.totals.micro_steps < least;
  const char* replica = plan.grid.tensor * plan.grid.pipeline > 1 ? "replica" : "rank";
  std::string text =
      fmt::format("{} micro x {} accum x {} = {} {} per {}update", plan.order.micro_batch, range(least, most),
                  counted(plan.order.world, replica), range(least * micro, most * micro),
                  most * micro == 1 ? "sample" : "samples", never_full ? "full " : "");
  if (short_epoch)
    text += fmt::format("; no window gets full, an epoch has {}", counted(plan.window.batches_per_epoch, "micro-step"));
  return text;
}

// Samples that do not fill a micro-step over all ranks.
std::string uneven_part(const RunPlan& plan) {
  const std::int64_t micro = plan.order.micro_batch * plan.order.world;
  const std::int64_t rest = plan.order.samples % micro;
  if (rest == 0 || plan.window.batches_per_epoch < 1) return {};
  if (const std::int64_t repeated = plan.order.repeated_per_epoch(); repeated > 0)
    return fmt::format("; {} repeated per epoch to fill all ranks", counted(repeated, "sample"));
  const std::int64_t covered = plan.window.batches_per_epoch * micro;
  if (covered < plan.order.samples)
    return fmt::format("; {} per epoch dropped, which do not fill all ranks",
                       counted(plan.order.samples - covered, "sample"));
  return {};
}

// The remaining samples, if the last micro-step of an epoch takes them.
std::string short_micro_step_part(const RunPlan& plan) {
  const std::int64_t micro = plan.order.micro_batch * plan.order.world;
  const bool uneven = plan.order.samples % micro != 0 && plan.window.batches_per_epoch >= 1;
  if (!uneven || plan.order.repeated_per_epoch() > 0 || plan.window.batches_per_epoch * micro < plan.order.samples)
    return {};
  if (drops_tail(plan.knobs) && plan.tail_micro_steps > 0) return {};
  return fmt::format("; the last micro-step of an epoch has {} in place of {}",
                     counted(plan.order.samples_in_batch(plan.window.batches_per_epoch - 1), "sample"), micro);
}

// Updates after 1, 2 and 3 epochs, without the run's own limits.
std::array<std::int64_t, 3> updates_after(const RunPlan& plan) {
  WindowShape shape = plan.window;
  shape.max_updates.reset();
  shape.max_micro_steps.reset();
  shape.max_iters.reset();
  shape.knobs.run_tail = RunTail::discard;
  std::array<std::int64_t, 3> updates{};
  for (std::int64_t epochs = 1; epochs <= 3; ++epochs) {
    shape.max_epochs = epochs;
    updates[static_cast<std::size_t>(epochs - 1)] = total_windows(shape).updates;
  }
  return updates;
}

bool carries(const RunPlan& plan) {
  return plan.knobs.tail == EpochTail::carry && plan.knobs.counter_reset != CounterReset::epoch_end;
}

std::string epoch_part(const RunPlan& plan) {
  const auto after = updates_after(plan);
  const std::array<std::int64_t, 3> each = {after[0], after[1] - after[0], after[2] - after[1]};
  if (each[0] == each[1] && each[1] == each[2] && !(carries(plan) && plan.tail_micro_steps > 0))
    return counted(each[0], "update") + " per epoch";
  if (!carries(plan) || has_scheduled_length(plan))
    return fmt::format("{}, {} and {} updates in the first three epochs", each[0], each[1], each[2]);
  const std::int64_t hundredths = plan.window.batches_per_epoch * 100 / plan.window.steps;
  const bool exact = plan.window.batches_per_epoch * 100 % plan.window.steps == 0;
  std::string number = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  if (number.ends_with('0')) number.pop_back();
  return (exact ? "" : "about ") + number + " updates per epoch";
}

std::string divided(const Division& division) {
  if (division.by == Division::By::none) return "not divided";
  return "divided " + division_text(division, "its");
}

/// Divisor of the `size` micro-steps of a window after `done` others; two numbers if MMEngine's remainder begins inside
/// it.
std::string divisor_text(const WindowShape& shape, std::int64_t done, std::int64_t size) {
  AccumulationWindow window(shape);
  window.seek(done);
  const auto first = window.next();
  if (!first) return "never divided";
  std::int64_t same = 1;
  for (; same < size; ++same) {
    const auto next = window.next();
    if (!next || next->division == first->division) continue;
    return fmt::format("{} {} and {} {}", same, divided(first->division), size - same,
                       division_text(next->division, "its"));
  }
  return divided(first->division);
}

/// Shape of the whole first epoch, even if the run is shorter. MMEngine's remainder is that of the run, if it contains
/// an epoch.
WindowShape first_epoch(const RunPlan& plan) {
  WindowShape shape = plan.window;
  const std::int64_t run = shape.max_iters.value_or(plan.totals.micro_steps);
  shape.max_iters.reset();
  if (plan.knobs.normalizer == Normalizer::run_remainder && run >= shape.batches_per_epoch) shape.max_iters = run;
  shape.max_updates.reset();
  shape.max_micro_steps.reset();
  shape.max_epochs = 1;
  return shape;
}

std::string tail_part(const RunPlan& plan) {
  if (has_scheduled_length(plan)) return {};
  const std::int64_t tail = plan.tail_micro_steps;
  if (tail == 0) return "; no tail";
  switch (plan.knobs.tail) {
    case EpochTail::carry:
      return carries(plan) ? "; windows cross epochs" : "";
    case EpochTail::drop_stop:
    case EpochTail::drop_drain:
      return fmt::format("; tail of {} dropped in each epoch", counted(tail, "micro-step"));
    case EpochTail::pad_repeat:
      return fmt::format("; tail window {} of {}, filled up by repeating {}", tail,
                         counted(plan.window.steps, "micro-step"), plan.window.steps - tail);
    case EpochTail::flush:
      break;
  }
  const bool drifts = plan.knobs.counter_reset == CounterReset::never;
  return fmt::format("; tail window{} {} of {}, {}", drifts ? " of the first epoch" : "", tail,
                     counted(plan.window.steps, "micro-step"),
                     divisor_text(first_epoch(plan), plan.window.batches_per_epoch - tail, tail));
}

// Size of the window that only the end of the run closes; 0 if there is none.
std::int64_t flushed_at_end(const RunPlan& plan) {
  if (plan.knobs.run_tail != RunTail::flush) return 0;
  WindowShape shape = plan.window;
  if (!shape.max_micro_steps && !shape.max_epochs) return 0;
  shape.knobs.run_tail = RunTail::discard;
  return total_windows(shape).left_over_micro_steps;
}

std::string run_part(const RunPlan& plan) {
  std::string text =
      fmt::format("; {} = {}", counted(plan.totals.updates, "update"), counted(plan.totals.micro_steps, "micro-step"));
  if (plan.totals.left_over_micro_steps > 0)
    text += fmt::format(", the last {} of them never used", plan.totals.left_over_micro_steps);
  const std::int64_t last = flushed_at_end(plan);
  if (last > 0 && !has_scheduled_length(plan))
    text += fmt::format(", the last window {} of {}, {}", last, counted(plan.window.steps, "micro-step"),
                        divisor_text(plan.window, plan.totals.micro_steps - last, last));
  if (plan.spec.run.stop_when != RunMeasure::none)
    text += ", or fewer: the run ends once " + early_end_condition(plan.spec.run);
  return text;
}

std::string warmup_part(const RunPlan& plan) {
  const double warmup = plan.curve.warmup;
  if (warmup == 0.0) return {};
  const auto whole = static_cast<std::int64_t>(warmup);
  const bool samples = plan.curve.clock == RateClock::samples;
  const char* const unit = samples ? "sample" : "position";
  const std::string length =
      static_cast<double>(whole) == warmup ? counted(whole, unit) : fmt::format("{:.1f} {}s", warmup, unit);
  std::string text = "; warm-up ";
  if (warmup > static_cast<double>(plan.totals.schedule_ticks))
    return text + fmt::format("{}, longer than the run's {}", length, plan.totals.schedule_ticks);
  if (plan.warmup_updates != whole || samples || plan.knobs.schedule_clock != ScheduleClock::update)
    text += length + " = ";
  return text +
         fmt::format("{} = {}", counted(plan.warmup_updates, "update"), counted(plan.warmup_micro_steps, "micro-step"));
}

std::string_view clock_text(ScheduleClock clock) {
  return name_of<ScheduleClock::external>(clock, {"update", "update x ranks", "micro-step", "epoch",
                                                  "every Nth micro-step", "every call, one a micro-step"});
}

}  // namespace

std::string RunPlan::arithmetic() const {
  return batch_part(*this) + uneven_part(*this) + "; " + epoch_part(*this) + tail_part(*this) + run_part(*this) +
         warmup_part(*this) +
         "; LR clock: " + std::string(curve.clock == RateClock::samples ? "sample" : clock_text(knobs.schedule_clock)) +
         short_micro_step_part(*this);
}

}  // namespace accrue
