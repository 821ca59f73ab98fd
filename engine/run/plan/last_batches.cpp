// SPDX-License-Identifier: Apache-2.0
// The window describes every micro-step; here the last few before an end are read together: whether they make an
// update, wait, remain, or were never fetched. Sentences count batches from 1.

#include "accrue/run/plan/last_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/base/name_of.h"

namespace accrue {

namespace {

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

BatchFate dropped_fate(const RunPlan& plan) {
  return fetches_dropped(plan.knobs) ? BatchFate::fetched_and_dropped : BatchFate::never_seen;
}

/// Counts the batches of the micro-step's window in its epoch, up to the restart of a filled-up window.
void count_own_batches(LastBatches& last, const MicroPlan& end, std::int64_t next_batch, std::int64_t length) {
  last.epoch = end.epoch;
  last.first_batch = std::max<std::int64_t>(next_batch - 1 - end.position, 0);
  last.batches = std::min(next_batch, length) - last.first_batch;
}

/// Describes the fate of the batches up to a micro-step that ends an epoch or the run.
LastBatches describe(const RunPlan& plan, std::int64_t micro_step) {
  AccumulationWindow window(plan.window);
  window.seek(micro_step - 1);
  const MicroPlan end = window.next().value();
  LastBatches last;
  last.epoch = end.epoch;
  last.ends_run = end.micro_step >= plan.totals.micro_steps;
  if (end.dropped_after > 0) {
    last.fate = dropped_fate(plan);
    last.first_batch = end.batch + 1;
    last.batches = end.dropped_after;
    return last;
  }
  count_own_batches(last, end, window.position().batch(), plan.window.batches_per_epoch);
  last.division = end.division;
  last.window_size = end.position + 1;
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
  window.seek(end.micro_step - end.position + end.window_size - 2);
  if (const auto closing = window.next(); closing && closing->update && closing->window == end.window) {
    last.fate = BatchFate::carried;
    last.window_size = end.window_size;
    last.division = closing->division;
  }
  return last;
}

}  // namespace

std::string_view to_string(BatchFate fate) {
  return name_of<BatchFate::filled_up>(fate, {"full_window", "short_update", "carried", "left_in_gradients",
                                              "never_seen", "fetched_and_dropped", "filled_up"});
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
    if (const std::int64_t end = first_epoch_end(plan.window); end > 0) found.push_back(describe(plan, end));
    if (found.empty() || !found.front().ends_run) found.push_back(describe(plan, plan.totals.micro_steps));
  }
  for (LastBatches& last : found) last.text = sentence(last);
  return found;
}

}  // namespace accrue
