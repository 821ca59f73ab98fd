// SPDX-License-Identifier: Apache-2.0
// plan and trace: what a spec would do, without doing it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "accrue/run/host/run_limits.h"
#include "accrue/run/whatif/upstream_defects.h"
#include "accrue/run/window/accumulation_window.h"
#include "accrue/run/window/lr_curve.h"
#include "print.h"
#include "spec_input.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// null if normalisation is deferred or counts items.
std::string divisor_of(const MicroPlan& plan) {
  const auto number = plan.division.number();
  return number && plan.division.when == NormalizeWhen::eager ? fmt::format("{}", *number) : "null";
}

/// Keys, order and spelling are fixed, because other tools read these lines.
void append_line(std::string& out, const MicroPlan& plan, double lr) {
  out +=
      fmt::format(R"({{"micro_step": {}, "epoch": {}, "batch": {}, "window": {}, "position": {}, "window_size": {}, )"
                  R"("divisor": {}, "sync": {}, "update": {}, "reason": "{}", "schedule_position": {}, "lr": {}}})"
                  "\n",
                  plan.micro_step, plan.epoch, plan.batch, plan.window, plan.position, plan.window_size,
                  divisor_of(plan), plan.sync, plan.update, to_string(plan.reason), plan.schedule_position, lr);
}

void print_steps(const RunPlan& plan) {
  constexpr std::size_t chunk_bytes = 1 << 16;
  AccumulationWindow window(plan.window);
  std::string out;
  const std::vector<std::int64_t>& overflows = plan.spec.teaching.overflow_at;
  bool overflowed = false;
  while (auto step = window.next()) {
    overflowed = overflowed || std::ranges::find(overflows, step->micro_step) != overflows.end();
    if (step->update && std::exchange(overflowed, false)) {
      window.report(StepOutcome::skipped_overflow);
      step->schedule_position = window.schedule_position();
    }
    append_line(out, *step, lr_at(plan.curve, step->schedule_position));
    if (out.size() < chunk_bytes) continue;
    put_data(out);
    if (std::ferror(stdout) != 0) return;  // the reader has closed the pipe
    out.clear();
  }
  put_data(out);
}

int print_megatron(const PlanOptions& options) {
  const auto lowered = megatron_from(options.input);
  if (!lowered) return status_refused;
  options.json ? put_data(megatron_json(*lowered) + "\n") : put(megatron_report(*lowered));
  return has_errors(lowered->findings) ? status_refused : status_done;
}

}  // namespace

int print_plan(const PlanOptions& options) {
  if (options.megatron) return print_megatron(options);
  if (options.dialects) {
    const auto comparison = comparison_from(options.input);
    if (!comparison) return status_refused;
    options.json ? put_data(dialect_json(*comparison) + "\n") : put(dialect_report(*comparison));
    return status_done;
  }
  const auto plan = plan_from(options.input);
  const auto shown = plan ? plan : plan_beyond_memory(options.input);
  if (!shown) return status_refused;
  std::string text = options.differences ? (options.json ? differences_json(*shown) : differences_report(*shown))
                     : options.json      ? plan_summary_json(*shown)
                                         : plan_report(*shown);
  if (!text.ends_with('\n')) text += '\n';
  options.json ? put_data(text) : put(text);
  if (!plan) return status_refused;
  if (const auto fits = check_limits(*plan); !fits) return report(fits.error());
  return status_done;
}

int print_trace(const SpecInput& input) {
  const auto plan = plan_from(input);
  if (!plan) return status_refused;
  print_steps(*plan);
  return status_done;
}

}  // namespace accrue::cli
