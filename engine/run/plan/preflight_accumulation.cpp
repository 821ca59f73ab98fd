// SPDX-License-Identifier: Apache-2.0
// Checks of [accumulation]: what a dialect can mean, and what knobs exclude each other.
#include <algorithm>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/choice_names.h"
#include "plan_derivation.h"
#include "preflight_checks.h"
#include "spec_text.h"

namespace accrue::preflight_detail {

namespace {

std::string dialect_name(const RunSpec& spec) {
  return std::string(to_name(spec.accumulation.dialect));
}

// A name and the knob that it stands for that is set to something else.
class Contradictions {
 public:
  explicit Contradictions(Findings& findings) : findings_(findings) {}
  template <typename Choice>
  void check(const std::string& name, bool named, const char* knob, Choice wanted, const std::optional<Choice>& found) {
    if (!named || !found || *found == wanted) return;
    findings_
        .error(std::string("accumulation.") + knob, "contradicts accumulation." + name,
               "\"" + std::string(to_name(*found)) + "\"",
               "\"" + std::string(to_name(wanted)) + "\", or without one of the two")
        .fix_value = std::string(to_name(wanted));
  }

 private:
  Findings& findings_;
};

void check_contradictions(const AccumulationSpec& accumulation, Findings& findings) {
  AccumulationSpec names = accumulation;  // what the names alone ask for
  names.knobs = {};
  names.knobs.reduce_mechanism = accumulation.knobs.reduce_mechanism;
  const AccumulationKnobs asked = resolve_knobs(names);
  const KnobOverrides& set = accumulation.knobs;
  Contradictions contradictions(findings);
  contradictions.check("replay = [\"drain_early\"]", asked.replays(Replay::drain_early), "tail", asked.tail, set.tail);
  contradictions.check("replay = [\"clip_partial_sums\"]", asked.replays(Replay::clip_partial_sums), "clip_stage",
                       asked.clip_stage, set.clip_stage);
  const bool reduces = asked.replays(Replay::narrow_no_sync) && asked.reduce_when == ReduceWhen::every_micro_step;
  contradictions.check("replay = [\"narrow_no_sync\"]", reduces, "reduce_when", asked.reduce_when, set.reduce_when);
  if (accumulation.dialect != Dialect::accelerate) return;
  const auto contradict = [&](const char* name, bool named, const char* knob, auto wanted, const auto& found) {
    contradictions.check(name, named, knob, wanted, found);
  };
  contradict("sync_with_dataloader", accumulation.sync_with_dataloader.has_value(), "tail", asked.tail, set.tail);
  contradict("sync_with_dataloader", accumulation.sync_with_dataloader.has_value(), "run_tail", asked.run_tail,
             set.run_tail);
  contradict("sync_each_batch", accumulation.sync_each_batch.has_value(), "reduce_when", asked.reduce_when,
             set.reduce_when);
  contradict("split_batches", accumulation.split_batches == true, "schedule_clock", asked.schedule_clock,
             set.schedule_clock);
  const bool own_clock = accumulation.split_batches == false && set.schedule_clock == ScheduleClock::update;
  contradict("split_batches", own_clock, "schedule_clock", asked.schedule_clock, set.schedule_clock);
  contradict("step_scheduler_with_optimizer", accumulation.step_scheduler_with_optimizer == false, "schedule_clock",
             asked.schedule_clock, set.schedule_clock);
  const bool outside =
      accumulation.step_scheduler_with_optimizer == true && set.schedule_clock == ScheduleClock::external;
  contradict("step_scheduler_with_optimizer", outside, "schedule_clock", asked.schedule_clock, set.schedule_clock);
}

// Names that only one system has mean nothing under another's rules, where they would be silently without effect.
void check_own_names(const RunSpec& spec, Findings& findings) {
  const AccumulationSpec& accumulation = spec.accumulation;
  const auto belongs = [&](std::string_view key, bool set, Dialect owner) {
    if (!set || accumulation.dialect == owner) return;
    findings
        .error(key, "has a meaning in the dialect " + std::string(to_name(owner)) + " only",
               "dialect " + dialect_name(spec), "accumulation.dialect = \"" + std::string(to_name(owner)) + "\"")
        .fix_value = "";
  };
  belongs("accumulation.sync_with_dataloader", accumulation.sync_with_dataloader.has_value(), Dialect::accelerate);
  belongs("accumulation.sync_each_batch", accumulation.sync_each_batch.has_value(), Dialect::accelerate);
  belongs("accumulation.split_batches", accumulation.split_batches.has_value(), Dialect::accelerate);
  belongs("accumulation.step_scheduler_with_optimizer", accumulation.step_scheduler_with_optimizer.has_value(),
          Dialect::accelerate);
  belongs("accumulation.adjust_scheduler", accumulation.adjust_scheduler.has_value(), Dialect::accelerate);
  belongs("accumulation.max_iters", accumulation.max_iters.has_value(), Dialect::mmengine);
  check_contradictions(accumulation, findings);
  if (accumulation.dialect == Dialect::accelerate && accumulation.adjust_scheduler)
    findings.note("accumulation.adjust_scheduler",
                  std::ranges::find(accumulation.replay, "adjust_scheduler") != accumulation.replay.end()
                      ? "does what Accelerate's documentation says, since it is replayed"
                      : "has no effect, here as in Accelerate");
}

// A defect is reproduced where its original has it.
void check_replay(const RunSpec& spec, Findings& findings) {
  for (const std::string& name : spec.accumulation.replay) {
    const auto defect = from_name<Replay>(name);
    if (!defect) continue;
    if (has_defect(spec.accumulation.dialect, *defect))
      findings.note("accumulation.replay", "reproduces a defect of the original: " + name);
    else
      findings.error("accumulation.replay", "the original of this dialect has no such defect",
                     "\"" + name + "\" with dialect " + dialect_name(spec), "another dialect, or not to name it");
  }
}

// A bug that has nothing to go wrong with.
void check_bug_acts(const RunSpec& spec, Findings& findings) {
  const auto idle = [&](const char* why) {
    findings.note("teaching.bug",
                  "\"" + std::string(to_name(spec.teaching.bug)) + "\" changes nothing in this run: " + why);
  };
  switch (spec.teaching.bug) {
    case Bug::batch_norm:
      if (spec.model.kind != ModelKind::mlp) idle("only model.kind = \"mlp\" has a BatchNorm");
      break;
    case Bug::no_sync_off_by_one:
    case Bug::no_sync_backward_only:
    case Bug::no_no_sync:
    case Bug::unused_parameters:
    case Bug::pipeline_sync:
    case Bug::repeated_samples:
      if (spec.parallel.data == 1) idle("there is only one rank");
      break;
    case Bug::clip_every_micro_step:
      if (spec.optimizer.clip_norm <= 0) idle("optimizer.clip_norm is 0, so nothing is clipped");
      break;
    default:
      break;
  }
}

void check_teaching(const RunSpec& spec, Findings& findings) {
  check_bug_acts(spec, findings);
  if (spec.teaching.bug != Bug::none)
    findings
        .warn("teaching.bug", "this run has a deliberate bug, which its record names",
              "\"" + std::string(to_name(spec.teaching.bug)) + "\"", "\"none\" for a real run")
        .fix_value = "none";
  if (!spec.teaching.overflow_at.empty())
    findings
        .warn("teaching.overflow_at", "losses are deliberately made infinite",
              std::to_string(spec.teaching.overflow_at.size()) + " micro-steps", "[] for a real run")
        .fix_value = "[]";
  const KnobOverrides& asked = spec.accumulation.knobs;
  if (asked.overflow && *asked.overflow != OverflowPolicy::raise && spec.run.on_non_finite != NonFiniteRule::skip)
    findings.note("run.on_non_finite", "is overridden by accumulation.overflow = \"" +
                                           std::string(to_name(*asked.overflow)) +
                                           "\", which skips windows with a non-finite gradient");
  const bool scaled = spec.optimizer.loss_scale.value_or(0.0) > 0.0 || spec.model.dtype == Dtype::float16;
  if (!spec.teaching.overflow_at.empty() && !asked.overflow && !scaled && spec.run.on_non_finite != NonFiniteRule::skip)
    findings.note("teaching.overflow_at",
                  "ends or pauses the run, as run.on_non_finite says; to skip the window instead, set "
                  "accumulation.overflow to \"hold\" or \"advance\"");
  if (spec.teaching.overflow_rank >= spec.parallel.data)
    findings.error("teaching.overflow_rank", "there is no such rank", std::to_string(spec.teaching.overflow_rank),
                   "less than parallel.data = " + std::to_string(spec.parallel.data));
}

void check_checkpoints(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  if (spec.checkpoint.every_micro_steps == 0) return;
  switch (knobs.checkpoint_scope) {
    case CheckpointScope::anywhere:
      return;
    case CheckpointScope::boundary:
      findings.note("checkpoint.every_micro_steps",
                    "waits for the end of the window each time, as the dialect " + dialect_name(spec) + " does");
      return;
    case CheckpointScope::counter_only:
      findings.warn(
          "checkpoint.every_micro_steps",
          "a run resumed in the middle of a window keeps its place there but has lost its gradients, as in the "
          "original",
          "checkpoint_scope counter_only", "accumulation.checkpoint_scope = \"anywhere\"");
      return;
    case CheckpointScope::nothing:
      findings.warn(
          "checkpoint.every_micro_steps",
          keeps_place_in_window(knobs)
              ? "a run resumed in the middle of a window has lost its gradients; its count is the iteration, which is "
                "kept, as in the original"
              : "a run resumed in the middle of a window has lost its gradients and its place there, as in the "
                "original",
          "checkpoint_scope nothing", "accumulation.checkpoint_scope = \"anywhere\"");
      return;
  }
}

void check_length_knobs(const RunSpec& spec, Findings& findings) {
  const KnobOverrides& knobs = spec.accumulation.knobs;
  const GroupLength length = knobs.group_length.value_or(GroupLength::fixed);
  const bool scheduled = has_length_schedule(length);
  if (length != GroupLength::memory_search && knobs.memory_limit)
    findings
        .error("accumulation.memory_limit", "has an effect only with group_length memory_search", "",
               "accumulation.group_length = \"memory_search\"")
        .fix_value = "";
  if (length != GroupLength::global_batch && knobs.batch_rounding)
    findings
        .error("accumulation.batch_rounding", "has an effect only with group_length global_batch", "",
               "accumulation.group_length = \"global_batch\"")
        .fix_value = "";
  if (scheduled && knobs.length_schedule.empty())
    findings.error("accumulation.length_schedule", "is missing, and group_length needs it", "",
                   "a list of rows [from, steps]");
  if (!scheduled && !knobs.length_schedule.empty())
    findings
        .error("accumulation.length_schedule", "has an effect only with group_length by_update or by_epoch", "",
               "accumulation.group_length = \"by_update\" or \"by_epoch\"")
        .fix_value = "[]";
  if (!std::ranges::is_sorted(knobs.length_schedule, std::ranges::less_equal(), &LengthChange::from))
    if (std::ranges::adjacent_find(knobs.length_schedule, std::ranges::greater_equal(), &LengthChange::from) !=
        knobs.length_schedule.end())
      findings.error("accumulation.length_schedule", "is not in rising order of its first numbers", "",
                     "each row to begin later than the one before");
  for (const LengthChange& change : knobs.length_schedule)
    if (change.steps > max_window_steps)
      findings.error("accumulation.length_schedule", "has a window that is too long", std::to_string(change.steps),
                     "at most " + std::to_string(max_window_steps) + " micro-steps");
}

void check_global_batch(const RunSpec& spec, Findings& findings) {
  const KnobOverrides& knobs = spec.accumulation.knobs;
  const bool used = knobs.group_length == GroupLength::global_batch;
  if (!used && knobs.global_batch)
    findings
        .error("accumulation.global_batch", "has an effect only with group_length global_batch", "",
               "accumulation.group_length = \"global_batch\"")
        .fix_value = "";
  if (used && !knobs.global_batch)
    findings.error("accumulation.global_batch", "is missing, and group_length needs it", "",
                   "samples an update over all ranks");
  if (!used || !knobs.global_batch) return;
  const std::int64_t micro = spec.accumulation.micro_batch * spec.parallel.data;
  if (*knobs.global_batch % micro == 0) return;
  if (knobs.batch_rounding.value_or(BatchRounding::error) != BatchRounding::error) {
    findings.note("accumulation.global_batch",
                  "is no multiple of micro_batch x ranks = " + std::to_string(micro) + " and is rounded to one");
    return;
  }
  findings
      .error("accumulation.global_batch", "is no multiple of micro_batch x ranks", std::to_string(*knobs.global_batch),
             "a multiple of " + std::to_string(spec.accumulation.micro_batch) + " x " +
                 std::to_string(spec.parallel.data) + " = " + std::to_string(micro))
      .fix_value = std::to_string(std::max<std::int64_t>(1, *knobs.global_batch / micro) * micro);
}

void check_clipping(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const KnobOverrides& asked = spec.accumulation.knobs;
  if (spec.optimizer.clip_norm <= 0) {
    for (const auto& [set, key] : {std::pair(asked.clip_kind.has_value(), "accumulation.clip_kind"),
                                   std::pair(asked.clip_stage.has_value(), "accumulation.clip_stage")})
      if (set && !knobs.replays(Replay::clip_partial_sums))
        findings.note(key, "changes nothing here: optimizer.clip_norm is 0, so nothing is clipped");
    return;
  }
  switch (knobs.clip_stage) {
    case ClipStage::none:
      findings
          .warn("optimizer.clip_norm",
                spec.accumulation.knobs.clip_stage
                    ? std::string("is not applied: accumulation.clip_stage is \"none\"")
                    : "is not applied: the dialect " + dialect_name(spec) + " leaves clipping out of its wrapper",
                spec_detail::real_text(spec.optimizer.clip_norm), "0, or accumulation.clip_stage = \"in_update\"")
          .fix_value = "0";
      break;
    case ClipStage::in_update:
      if (spec.accumulation.dialect == Dialect::colossalai && !asked.clip_stage)
        findings.note("optimizer.clip_norm",
                      "is applied at the boundary, as Colossal-AI's first version did; its later one clips in every "
                      "micro-step");
      break;
    case ClipStage::every_micro_step:
      if (spec.accumulation.knobs.normalize_when == NormalizeWhen::deferred && knobs.normalizer != Normalizer::none)
        findings
            .error(
                "accumulation.normalize_when",
                "divides at the boundary, after clip_stage = \"every_micro_step\" has bound sums that are not divided",
                "\"deferred\"", "\"eager\"")
            .fix_value = "eager";
      findings
          .warn("accumulation.clip_stage",
                "clips sums that are not finished yet, so the update differs from that of one large batch",
                "\"every_micro_step\"", "\"in_update\"")
          .fix_value = "in_update";
      break;
  }
}

// K8 and K9 against what the ranks exchange through.
void check_reduction(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const std::int64_t ranks = spec.parallel.data;
  const std::int64_t steps = steps_of(spec.accumulation, ranks);
  const bool counts = counts_items(knobs);
  if (ranks > 1 && knobs.reduce_when == ReduceWhen::never)
    findings
        .warn("accumulation.reduce_when", "the ranks never exchange gradients and train models of their own",
              "\"never\" with " + std::to_string(ranks) + " ranks", "\"boundary\"")
        .fix_value = "boundary";
  if (ranks > 1 && knobs.reduce_when == ReduceWhen::every_micro_step && steps > 1)
    findings.note("accumulation.reduce_when",
                  "gives the same result as \"boundary\" for " + std::to_string(steps) + " times the traffic");
  const KnobOverrides& asked = spec.accumulation.knobs;
  const auto no_effect = [&findings](const char* key, const char* why) {
    findings.note(key, std::string("changes nothing here: ") + why);
  };
  const bool narrow = asked.no_sync_cover == NoSyncCover::backward;
  const bool each = knobs.reduce_when == ReduceWhen::every_micro_step && !asked.reduce_when;
  if (narrow && each && ranks > 1)
    findings.note("accumulation.no_sync_cover",
                  "covers the backward alone, and the forward before it has decided to reduce: every micro-step does");
  else if (narrow)
    no_effect("accumulation.no_sync_cover",
              ranks == 1 ? "there is only one rank" : "reduce_when or the handlers decide when ranks reduce");
  if (asked.no_sync_cover == NoSyncCover::forward)
    no_effect("accumulation.no_sync_cover", "the forward decides whether the backward after it reduces");
  if (asked.checkpoint_scope && spec.checkpoint.every_micro_steps == 0)
    no_effect("accumulation.checkpoint_scope",
              "checkpoints are taken between two windows unless checkpoint.every_micro_steps is set");
  if (asked.reduce_mechanism == ReduceMechanism::reducer && spec.teaching.bug != Bug::none)
    no_effect("accumulation.reduce_mechanism", "a run with a bug of the gallery reduces after the backward");
  if (ranks == 1 && asked.reduce_op) no_effect("accumulation.reduce_op", "there is only one rank");
  if (asked.normalizer_scope && !counts)
    no_effect("accumulation.normalizer_scope", "the normalizer counts neither samples nor tokens");
  else if (asked.normalizer_scope && ranks == 1)
    no_effect("accumulation.normalizer_scope", "there is one rank");
  const bool one_rank_scope = counts && knobs.normalizer_scope == NormalizerScope::rank;
  if (ranks > 1 && one_rank_scope)
    findings
        .warn("accumulation.normalizer_scope",
              "each rank divides by its own count, so ranks with fewer items weigh more", "\"rank\"",
              "\"data_parallel\"")
        .fix_value = "data_parallel";
  if (ranks > 1 && knobs.reduce_op == ReduceOp::sum && !counts_over_ranks(knobs))
    findings
        .warn("accumulation.reduce_op",
              "adds gradients that each rank has divided already, so the update is " + std::to_string(ranks) +
                  " times as large as on one rank",
              "\"sum\"", "\"mean\"")
        .fix_value = "mean";
}

// What no division can correct: a layer that looks at a micro-batch as a whole.
void check_batch_norm(const RunSpec& spec, Findings& findings) {
  const std::int64_t steps = steps_of(spec.accumulation, spec.parallel.data);
  const GroupLength length = resolve_knobs(spec).group_length;
  const bool one = steps == 1 && (length == GroupLength::fixed || length == GroupLength::global_batch);
  if (!spec.model.batch_norm || one) return;
  findings
      .warn("model.batch_norm",
            "takes its statistics from each micro-batch, so a window is not one batch of the same samples",
            std::to_string(steps) + " micro-steps of " + std::to_string(spec.accumulation.micro_batch) + " samples",
            "false, or accumulation.steps = 1")
      .fix_value = "false";
}

void check_clock(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  if (knobs.schedule_clock == ScheduleClock::external && spec.schedule.kind != ScheduleKind::constant)
    findings.note("accumulation.schedule_clock",
                  "the schedule ticks at every call, which is once a micro-step, whatever the window does");
  if (counts_items(knobs) && divides_when(knobs, spec.parallel.data) == NormalizeWhen::eager)
    findings.note(
        "accumulation.normalize_when",
        "the count of a window is known at its end only, so its batches are fetched and counted before its first "
        "micro-step");
}

}  // namespace

void check_accumulation(const RunSpec& spec, Findings& findings) {
  const AccumulationKnobs knobs = resolve_knobs(spec);
  check_own_names(spec, findings);
  check_replay(spec, findings);
  check_teaching(spec, findings);
  check_checkpoints(spec, knobs, findings);
  check_length_knobs(spec, findings);
  check_global_batch(spec, findings);
  check_clipping(spec, knobs, findings);
  check_reduction(spec, knobs, findings);
  check_batch_norm(spec, findings);
  check_clock(spec, knobs, findings);
}

}  // namespace accrue::preflight_detail
