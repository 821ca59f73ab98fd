// SPDX-License-Identifier: Apache-2.0
// A plan as text: label, number, and the same number in other units.
#include <fmt/format.h>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/cost/parameter_groups.h"
#include "accrue/run/fields/block_form.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/plan/forecast.h"
#include "accrue/run/plan/overlap.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/window/inside_windows.h"
#include "kept_activations.h"
#include "published_forms.h"
#include "unfilled_groups.h"

namespace accrue {

namespace {

/// Like counted(), with grouped digits.
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
  const auto& ramp = plan.window.rampup;
  report.row("samples per update",
             ramp ? fmt::format("{} at first, {} after the ramp-up", grouped(ramp->first), grouped(plan.global_batch))
                  : grouped(plan.global_batch));
  if (ramp)
    report.row("ramp-up", fmt::format("{} per update, {} more in equal steps up to {} samples", grouped(ramp->first),
                                      grouped(ramp->increment), grouped(ramp->samples)));
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

/// The warm-up in every unit; a fraction of the schedule's length need not be an integer.
std::string warmup(const RunPlan& plan) {
  const double length = plan.curve.warmup;
  const auto whole = static_cast<std::int64_t>(length);
  const char* const unit = plan.curve.clock == RateClock::samples ? "sample" : "position";
  const std::string positions =
      static_cast<double>(whole) == length ? amount(whole, unit) : fmt::format("{:.1f} {}s", length, unit);
  return fmt::format("{} = {} = {} = {}", positions, amount(plan.warmup_updates, "update"),
                     amount(plan.warmup_micro_steps, "micro-step"), amount(plan.warmup_samples, "sample"));
}

std::string peak_and_lowest(const LrCurve& curve) {
  return fmt::format("{:g}, {:g}", curve.lr, has_lowest_rate(curve.kind) ? curve.min_lr : curve.lr);
}

std::string in_words(const ParameterGroup& group) {
  std::string text = group.weight_decay > 0.0 ? "weight decay" : "no weight decay";
  if (group.lr != 1.0) text += fmt::format(", rate x {:g}", group.lr);
  return group.decoupled ? text + ", the embeddings' rate" : text;
}

void add_schedule(Report& report, const RunPlan& plan) {
  const OptimizerSpec& optimizer = plan.spec.optimizer;
  const bool samples = plan.curve.clock == RateClock::samples;
  report.section("Learning rate");
  report.row("schedule", std::string(to_name(plan.curve.kind)));
  report.row("clock", std::string(samples ? to_name(plan.curve.clock) : to_name(plan.knobs.schedule_clock)));
  report.row("positions", fmt::format("{} in this run, the schedule has {}", grouped(plan.totals.schedule_ticks),
                                      grouped(plan.curve.total)));
  report.row("warm-up", warmup(plan));
  report.row("peak, lowest", peak_and_lowest(plan.curve));
  if (optimizer.decoupled_lr) report.row("of the embeddings", peak_and_lowest(decoupled_curve(plan.curve, optimizer)));
  if (plan.weight_decay.style != WeightDecayStyle::constant)
    report.row("weight decay",
               fmt::format("{:g} to {:g}, {}, over {}", plan.weight_decay.start, plan.weight_decay.end,
                           to_name(plan.weight_decay.style), amount(plan.weight_decay.samples, "sample")));
  if (!optimizer.no_decay && optimizer.scaled_lr.empty() && !optimizer.decoupled_lr) return;
  if (!cost_is_known(plan.spec)) return;
  for (const ParameterGroupSize& each : parameter_groups(plan.spec.model, optimizer))
    report.row(amount(each.parameters, "tensor"), in_words(each.group));
}

void add_ranks(Report& report, const RunPlan& plan) {
  report.section("Ranks");
  report.row("ranks", fmt::format("{} (data {} x pipeline {} x tensor {})", plan.grid.world(), plan.grid.data,
                                  plan.grid.pipeline, plan.grid.tensor));
  report.row("device",
             fmt::format("{}, {} per rank", to_name(plan.spec.launch.device), amount(plan.threads_per_rank, "thread")));
  report.row("backend", std::string(to_name(plan.backend)));
  if (plan.grid.world() > 1 && cost_is_known(plan.spec))
    report.row("sent per update",
               fmt::format("{} by the rank that sends most", format_bytes(plan.wire_bytes_per_update)));
  if (cost_is_known(plan.spec)) report.row("gradients", "in " + amount(plan.gradient_buckets, "bucket"));
  if (plan.grid.data > 1)
    report.row("gradients sent", reduces_during_backward(plan)
                                     ? "while a window's last backward runs"
                                     : "after a window's last backward (" + reason_to_reduce_after(plan) + ")");
  if (plan.spec.parallel.overlap_param_gather && plan.spec.parallel.zero > 0)
    report.row("parameters sent", "until the next forward needs them");
  if (plan.grid.pipeline > 1)
    report.row("bubble", fmt::format("{:.1f} % of a window's time a stage waits", 100 * plan.bubble));
}

/// Whether the published table has this case: blocks that are all kept, or each recomputed.
bool has_published_form(const RunSpec& spec) {
  const ParallelSpec& parallel = spec.parallel;
  if (spec.model.kind != ModelKind::gpt || !is_gpt2_form(block_form(spec.model)) || spec.model.layers < 1) return false;
  return parallel.recompute != RecomputeKind::full ||
         (parallel.recompute_method == RecomputeMethod::uniform && parallel.recompute_layers == 1);
}

void add_published(Report& report, const RunPlan& plan) {
  const RunSpec& spec = plan.spec;
  if (!has_published_form(spec)) return;
  const double blocks = static_cast<double>(spec.model.layers);
  const double here = (kept_by_chunk(spec, spec.model.layers).blocks - kept_by_chunk(spec, 0).blocks) / blocks;
  const double there = published_block_bytes(spec.model, plan.order.micro_batch, spec.parallel);
  report.row("activations of a block", fmt::format("{}; by the published table, in 16 bit with dropout, {}",
                                                   format_bytes(here), format_bytes(there)));
  if (spec.parallel.recompute == RecomputeKind::none) return;
  ParallelSpec kept = spec.parallel;
  kept.recompute = RecomputeKind::none;
  report.row(
      "recomputation",
      fmt::format("{:.1f} % fewer bytes of a block; by the published forms {:.1f} % fewer, {:.1f} % more "
                  "operations",
                  100.0 * spared_of_a_block(spec),
                  100.0 * (1.0 - there / published_block_bytes(spec.model, plan.order.micro_batch, kept)),
                  100.0 * (published_flops(spec.model, spec.parallel) / published_flops(spec.model, kept) - 1.0)));
}

void add_memory(Report& report, const RunPlan& plan) {
  const bool divided = plan.grid.tensor * plan.grid.pipeline > 1;
  report.section(fmt::format("Memory of {} ({}{})", divided ? "the fullest rank" : "one rank",
                             amount(plan.parameter_count, "parameter"), divided ? " in the whole model" : ""));
  report.bytes("parameters", plan.memory.parameters);
  report.bytes("gradients", plan.memory.gradients);
  report.bytes("optimizer state", plan.memory.optimizer);
  report.bytes("activations", plan.memory.activations);
  report.bytes("buffers", plan.memory.buffers);
  report.bytes("process", plan.memory.process);
  report.bytes("total", plan.memory.total());
  add_published(report, plan);
}

/// "data 3.2 MB, tensor 12.6 MB"
std::string sent_by_axis(const RankCost& cost) {
  std::string text;
  for (std::size_t axis = 0; axis < cost.wire.size(); ++axis)
    if (cost.wire[axis] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(static_cast<Axis>(axis)),
                          format_bytes(cost.wire[axis]));
  return text.empty() ? "nothing" : text;
}

/// Adds one row for each range of equal ranks.
void add_stages(Report& report, const RunPlan& plan) {
  if (plan.grid.world() == 1) return;
  report.section("Each rank");
  report.line(fmt::format("{:<11} {:>12} {:>12} {:>12} {:>12} {:>10}  {}", "ranks", "parameters", "gradients",
                          "optimizer", "activations", "in flight", "sent per update"));
  const std::int64_t alike = plan.grid.data * plan.grid.tensor;
  const auto stages = std::ssize(plan.stages);
  for (std::int64_t first = 0, next = 0; first < stages; first = next) {
    const RankCost& cost = plan.stages[static_cast<std::size_t>(first)];
    while (next < stages && plan.stages[static_cast<std::size_t>(next)] == cost) ++next;
    const std::int64_t last = next * alike - 1;
    const std::string ranks =
        last > first * alike ? fmt::format("{} to {}", first * alike, last) : std::to_string(last);
    report.line(fmt::format("{:<11} {:>12} {:>12} {:>12} {:>12} {:>10}  {}", ranks, format_bytes(cost.parameters),
                            format_bytes(cost.gradients), format_bytes(cost.optimizer), format_bytes(cost.activations),
                            cost.chunks_in_flight, sent_by_axis(cost)));
  }
}

}  // namespace

std::string plan_report(const RunPlan& plan) {
  Report report;
  report.text_ = plan.arithmetic() + "\n";
  report.section("Data");
  report.row("training", amount(plan.data.samples, "sample"));
  report.row("evaluation", amount(plan.data.validation_samples, "sample"));
  if (plan.data.tokens_per_sample > 0) report.row("tokens per sample", grouped(plan.data.tokens_per_sample));
  if (has_named_classes(plan.data)) report.row("classes", class_names(plan.data));
  add_window(report, plan);
  add_schedule(report, plan);
  add_ranks(report, plan);
  if (cost_is_known(plan.spec)) {
    add_memory(report, plan);
    add_stages(report, plan);
  } else {
    report.section("Parameters, memory and traffic");
    report.line(fmt::format("not known before the run: a plug-in library makes the model \"{}\"",
                            *plan.spec.megatron.custom_model_provider_function));
  }
  return report.text_;
}

}  // namespace accrue
