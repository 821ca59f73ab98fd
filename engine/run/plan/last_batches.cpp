// SPDX-License-Identifier: Apache-2.0
// The window says of every micro-step what it is; here the last few before an end are read together: whether they make
// an update, wait, stay behind, or were never fetched. Sentences count batches from 1, as people do.

#include "accrue/run/last_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace accrue {

namespace {

constexpr std::string_view fate_names[] = {"full_window", "short_update",        "carried",  "left_in_gradients",
                                           "never_seen",  "fetched_and_dropped", "filled_up"};

/// The micro-steps of the window that is open or has just ended where a walk stands.
struct Ending {
  std::vector<MicroPlan> window;
  AccumulationWindow walk;
  const MicroPlan& last() const { return window.back(); }
};

/// Walks on until an epoch ends or the run does.
void walk_to_end(Ending& at, bool stop_at_epoch) {
  while (const auto micro = at.walk.next()) {
    if (micro->position == 0) at.window.clear();
    at.window.push_back(*micro);
    if (stop_at_epoch && micro->epoch_ends) return;
    if (micro->update) at.walk.skip_full_windows(std::numeric_limits<std::int64_t>::max());
  }
}

/// "batch 10", "batches 9 and 10", "batches 7 to 10"
std::string batch_names(std::int64_t first, std::int64_t count) {
  if (count == 1) return fmt::format("batch {}", first + 1);
  return fmt::format("batches {} {} {}", first + 1, count == 2 ? "and" : "to", first + count);
}

std::string weight_text(const LastBatches& last) {
  const auto divisor = last.division->number();
  const double weight = divisor ? static_cast<double>(last.window_size) / *divisor : 1.0;
  if (weight == 1.0) return "full weight";
  if (weight == 0.5) return "half weight";
  return fmt::format("{}/{:g} of the weight of a full one", last.window_size, *divisor);
}

std::string divided(const LastBatches& last) {
  return fmt::format("divided {} ({})", division_text(*last.division, "its own"), weight_text(last));
}

std::string sentence(const LastBatches& last) {
  const std::string where =
      last.ends_run ? "At the end of the run" : fmt::format("At the end of epoch {}", last.epoch + 1);
  const std::string who = last.batches > 0 ? batch_names(last.first_batch, last.batches) : "";
  const char* verb = last.batches == 1 ? "s" : "";
  const char* be = last.batches == 1 ? "is" : "are";
  const std::int64_t others = last.window_size - last.batches;
  switch (last.fate) {
    case BatchFate::full_window:
      return where + " a window is full: nothing is left over.";
    case BatchFate::short_update:
      return fmt::format("{}, {} make{} an update of {}{}, {}.", where, who, verb, last.window_size,
                         others > 0 ? fmt::format(" with {} that waited", others) : "", divided(last));
    case BatchFate::carried:
      return fmt::format("{}, {} stay{} in the gradients; the next {} complete{} the window.", where, who, verb,
                         others == 1 ? "batch" : fmt::format("{} batches", others), others == 1 ? "s" : "");
    case BatchFate::left_in_gradients:
      return fmt::format("{}, {} stay{} in the gradients and never reach{} the weights.", where, who, verb,
                         last.batches == 1 ? "es" : "");
    case BatchFate::never_seen:
      return fmt::format("{}, {} {} never seen.", where, who, be);
    case BatchFate::fetched_and_dropped:
      return fmt::format("{}, {} {} fetched and dropped.", where, who, be);
    case BatchFate::filled_up:
      return fmt::format("{}, the window of {} is filled up with the epoch's first {}, {}.", where, who,
                         others == 1 ? "batch" : fmt::format("{} batches", others), divided(last));
  }
  return {};
}

/// Of the window's micro-steps, those of the epoch that ends, up to where a filled-up window begins again.
void count_own_batches(LastBatches& last, const std::vector<MicroPlan>& window) {
  last.epoch = window.back().epoch;
  for (const MicroPlan& micro : window) {
    if (micro.epoch != last.epoch) continue;
    if (last.batches > 0 && micro.batch < last.first_batch + last.batches) break;  // repeated
    if (last.batches == 0) last.first_batch = micro.batch;
    ++last.batches;
  }
}

BatchFate dropped_fate(const RunPlan& plan) {
  return plan.knobs.tail == EpochTail::drop_drain ? BatchFate::fetched_and_dropped : BatchFate::never_seen;
}

LastBatches describe(Ending& at, const RunPlan& plan) {
  LastBatches last;
  const MicroPlan end = at.last();
  last.epoch = end.epoch;
  last.ends_run = end.micro_step >= plan.totals.micro_steps;
  if (end.dropped_after > 0) {
    last.fate = dropped_fate(plan);
    last.first_batch = end.batch + 1;
    last.batches = end.dropped_after;
    return last;
  }
  count_own_batches(last, at.window);
  last.division = end.division;
  last.window_size = static_cast<std::int64_t>(at.window.size());
  if (end.update) {
    const bool repeated = last.window_size > last.batches && plan.knobs.tail == EpochTail::pad_repeat;
    last.fate = repeated                             ? BatchFate::filled_up
                : end.reason == BoundaryReason::full ? BatchFate::full_window
                                                     : BatchFate::short_update;
    if (last.fate == BatchFate::full_window) last.batches = last.window_size = 0;
    return last;
  }
  last.fate = BatchFate::left_in_gradients;
  last.window_size = 0;
  std::int64_t size = static_cast<std::int64_t>(at.window.size());
  while (const auto micro = at.walk.next()) {
    ++size;
    if (!micro->update) continue;
    last.fate = BatchFate::carried;
    last.window_size = size;
    last.division = micro->division;
    break;
  }
  return last;
}

}  // namespace

std::string_view to_string(BatchFate fate) {
  return fate_names[static_cast<std::size_t>(fate)];
}

std::string division_text(const Division& division, std::string_view own) {
  switch (division.by) {
    case Division::By::samples:
      return fmt::format("by {} samples", own);
    case Division::By::items:
      return fmt::format("by {} items", own);
    case Division::By::number:
    case Division::By::none:
      break;
  }
  return fmt::format("by {:g}", division.value);
}

std::vector<LastBatches> find_last_batches(const RunPlan& plan) {
  std::vector<LastBatches> found;
  if (plan.totals.micro_steps == 0) {
    if (plan.window.batches_per_epoch > 0)
      found.push_back({.fate = dropped_fate(plan), .batches = plan.window.batches_per_epoch, .ends_run = true});
  } else {
    Ending epoch{{}, AccumulationWindow(plan.window)};
    walk_to_end(epoch, true);
    if (epoch.last().epoch_ends) found.push_back(describe(epoch, plan));
    if (found.empty() || !found.front().ends_run) {
      Ending run{{}, AccumulationWindow(plan.window)};
      run.walk.seek(std::max<std::int64_t>(0, plan.totals.micro_steps - 2 * largest_steps(plan.window)));
      walk_to_end(run, false);
      found.push_back(describe(run, plan));
    }
  }
  for (LastBatches& last : found) last.text = sentence(last);
  return found;
}

}  // namespace accrue
