// SPDX-License-Identifier: Apache-2.0
// A plan as text: label, number, and the same number in other units.
#include <fmt/format.h>

#include "accrue/run/choice_names.h"
#include "accrue/run/counted.h"
#include "accrue/run/inside_windows.h"
#include "accrue/run/overlap.h"
#include "accrue/run/run_plan.h"
#include "posix_file.h"
#include "unfilled_groups.h"

namespace accrue {

namespace {

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

/// As counted(), with digits in groups.
std::string amount(std::int64_t count, std::string_view what) {
  const std::string text = counted(count, what);
  return grouped(count) + text.substr(text.find(' '));
}

class Report {
 public:
  void section(std::string_view title) { text_ += fmt::format("{}{}\n", text_.empty() ? "" : "\n", title); }
  void row(std::string_view label, const std::string& value) { text_ += fmt::format("  {:<22} {}\n", label, value); }
  void line(std::string_view text) { text_ += fmt::format("  {}\n", text); }
  void bytes(std::string_view label, std::int64_t bytes) {
    text_ += fmt::format("  {:<22} {:>12}\n", label, format_bytes(bytes));
  }
  std::string text_;
};

void add_window(Report& report, const RunPlan& plan) {
  const WindowTotals& totals = plan.totals;
  report.section("Accumulation");
  report.row("dialect", std::string(to_name(plan.spec.accumulation.dialect)));
  report.row("micro-steps per window", grouped(plan.window.steps));
  report.row("samples per update", grouped(plan.global_batch));
  report.row("tokens per update", plan.tokens_per_update > 0 ? grouped(plan.tokens_per_update) : "differs");
  report.row("micro-steps per epoch",
             fmt::format("{} = {} and {} left over", grouped(plan.window.batches_per_epoch),
                         amount(plan.full_windows_per_epoch, "full window"), plan.tail_micro_steps));
  report.row("whole run",
             fmt::format("{} = {} in {}", amount(totals.updates, "update"), amount(totals.micro_steps, "micro-step"),
                         amount(totals.epochs_started, "epoch")));
  if (totals.dropped_batches > 0) report.row("dropped", amount(totals.dropped_batches, "micro-step"));
  if (totals.left_over_micro_steps > 0)
    report.row("never used", amount(totals.left_over_micro_steps, "micro-step") + " at the end of the run");
  if (!stops_inside_windows(plan.spec))
    report.line(
        "Pausing, single steps, evaluation and checkpoints wait for the end of a window: micro-steps overlap in a "
        "pipeline.");
  if (std::string text = unfilled_groups_text(plan); !text.empty()) {
    text.front() = 'W';
    report.line(text + ".");
  }
}

void add_schedule(Report& report, const RunPlan& plan) {
  report.section("Learning rate");
  report.row("schedule", std::string(to_name(plan.curve.kind)));
  report.row("clock", std::string(to_name(plan.knobs.schedule_clock)));
  report.row("positions", fmt::format("{} in this run, the schedule has {}", grouped(plan.totals.schedule_ticks),
                                      grouped(plan.curve.total)));
  report.row(
      "warm-up",
      fmt::format("{} = {} = {} = {}", amount(plan.curve.warmup, "position"), amount(plan.warmup_updates, "update"),
                  amount(plan.warmup_micro_steps, "micro-step"), amount(plan.warmup_samples, "sample")));
  report.row("peak, lowest",
             fmt::format("{:g}, {:g}", plan.curve.lr,
                         plan.curve.kind == ScheduleKind::constant ? plan.curve.lr : plan.curve.min_lr));
}

void add_ranks(Report& report, const RunPlan& plan) {
  report.section("Ranks");
  report.row("ranks", fmt::format("{} (data {} x pipeline {} x tensor {})", plan.grid.world(), plan.grid.data,
                                  plan.grid.pipeline, plan.grid.tensor));
  report.row("device",
             fmt::format("{}, {} per rank", to_name(plan.spec.launch.device), amount(plan.threads_per_rank, "thread")));
  report.row("backend", std::string(to_name(plan.backend)));
  report.row("gradients sent",
             fmt::format("{} per update by each rank, in {}", format_bytes(plan.wire_bytes_per_update),
                         amount(plan.gradient_buckets, "bucket")));
  if (plan.grid.data > 1)
    report.row("they travel", reduces_during_backward(plan) ? "while a window's last backward runs"
                                                            : "after a window's last backward");
  if (plan.spec.parallel.overlap_param_gather && plan.spec.parallel.zero > 0)
    report.row("parameters travel", "until the next forward needs them");
}

void add_memory(Report& report, const RunPlan& plan) {
  const bool divided = plan.grid.tensor * plan.grid.pipeline > 1;
  report.section(fmt::format("Memory of {} ({}{})", divided ? "the fullest rank" : "one rank",
                             amount(plan.parameter_count, "parameter"), divided ? " in the whole model" : ""));
  report.bytes("parameters", plan.memory.parameters);
  report.bytes("gradients", plan.memory.gradients);
  report.bytes("optimizer state", plan.memory.optimizer);
  report.bytes("activations", plan.memory.activations);
  report.bytes("process", plan.memory.process);
  report.bytes("total", plan.memory.total());
}

}  // namespace

std::string plan_report(const RunPlan& plan) {
  Report report;
  report.text_ = plan.arithmetic() + "\n";
  report.section("Data");
  report.row("training", amount(plan.data.samples, "sample"));
  report.row("evaluation", amount(plan.data.validation_samples, "sample"));
  if (plan.data.tokens_per_sample > 0) report.row("tokens per sample", grouped(plan.data.tokens_per_sample));
  add_window(report, plan);
  add_schedule(report, plan);
  add_ranks(report, plan);
  add_memory(report, plan);
  return report.text_;
}

}  // namespace accrue
