// SPDX-License-Identifier: Apache-2.0
// Checks of [accumulation]: possible meanings in a dialect, and knobs that exclude each other.
#include <algorithm>
#include <functional>

#include "accrue/run/base/counted.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/plan/overlap.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "preflight_checks.h"
#include "spec_text.h"
#include "window_length.h"

namespace accrue::preflight_detail {

namespace {

std::string dialect_name(const RunSpec& spec) {
  return std::string(to_name(spec.accumulation.dialect));
}

// Finds a name whose knob is set to another value.
void check_contradictions(const AccumulationSpec& accumulation, Findings& findings) {
  AccumulationSpec names = accumulation;  // knobs implied by the names alone
  names.knobs = {};
  names.knobs.reduce_mechanism = accumulation.knobs.reduce_mechanism;
  const AccumulationKnobs asked = resolve_knobs(names);
  const KnobOverrides& set = accumulation.knobs;
  const auto contradict = [&](const std::string& name, bool named, const char* knob, auto wanted, const auto& found) {
    if (named && found && *found != wanted)
      findings.error(std::string("accumulation.") + knob, "contradicts accumulation." + name, quoted(*found),
                     quoted(wanted) + ", or only one of the two keys", std::string(to_name(wanted)));
  };
  contradict("replay = [\"drain_early\"]", asked.replays(Replay::drain_early), "tail", asked.tail, set.tail);
  contradict("replay = [\"clip_partial_sums\"]", asked.replays(Replay::clip_partial_sums), "clip_stage",
             asked.clip_stage, set.clip_stage);
  const bool reduces = asked.replays(Replay::narrow_no_sync) && asked.reduce_when == ReduceWhen::every_micro_step;
  contradict("replay = [\"narrow_no_sync\"]", reduces, "reduce_when", asked.reduce_when, set.reduce_when);
  if (accumulation.dialect != Dialect::accelerate) return;
  const bool with_data = accumulation.sync_with_dataloader.has_value();
  contradict("sync_with_dataloader", with_data, "tail", asked.tail, set.tail);
  contradict("sync_with_dataloader", with_data, "run_tail", asked.run_tail, set.run_tail);
  contradict("sync_each_batch", accumulation.sync_each_batch.has_value(), "reduce_when", asked.reduce_when,
             set.reduce_when);
  // True and false each exclude one clock.
  const auto clock = [&](const char* name, const std::optional<bool>& key, bool decides, ScheduleClock other) {
    const bool named = key == decides || (key == !decides && set.schedule_clock == other);
    contradict(name, named, "schedule_clock", asked.schedule_clock, set.schedule_clock);
  };
  clock("split_batches", accumulation.split_batches, true, ScheduleClock::update);
  clock("step_scheduler_with_optimizer", accumulation.step_scheduler_with_optimizer, false, ScheduleClock::external);
}

// Names of a single system have no effect under another's rules; they must not be ignored silently.
void check_own_names(const RunSpec& spec, Findings& findings) {
  const AccumulationSpec& accumulation = spec.accumulation;
  for (const SpecField& field : spec_fields()) {
    const bool set = field.dialect && !std::holds_alternative<std::monostate>(field.get(spec));
    if (set && accumulation.dialect != *field.dialect)
      findings.error(field.key, "has a meaning only in the dialect " + std::string(to_name(*field.dialect)),
                     "dialect " + dialect_name(spec), "accumulation.dialect = " + quoted(*field.dialect), "");
  }
  check_contradictions(accumulation, findings);
  if (accumulation.dialect == Dialect::accelerate && accumulation.adjust_scheduler)
    findings.note("accumulation.adjust_scheduler",
                  std::ranges::find(accumulation.replay, "adjust_scheduler") != accumulation.replay.end()
                      ? "does what Accelerate's documentation says, since it is replayed"
                      : "has no effect, here as in Accelerate");
}

// A defect can be reproduced only in its original's dialect.
void check_replay(const RunSpec& spec, Findings& findings) {
  for (const std::string& name : spec.accumulation.replay) {
    const auto defect = from_name<Replay>(name);
    if (defect && has_defect(spec.accumulation.dialect, *defect))
      findings.note("accumulation.replay", "reproduces a defect of the original: " + name);
    else if (defect)
      findings.error("accumulation.replay", "the original of this dialect has no such defect",
                     "\"" + name + "\" with dialect " + dialect_name(spec), "another dialect, or a list without it");
  }
}

void check_teaching(const RunSpec& spec, Findings& findings) {
  const TeachingSpec& teaching = spec.teaching;
  if (teaching.bug != Bug::none)
    findings.warn("teaching.bug", "this run has a deliberate bug, which its record names", quoted(teaching.bug),
                  "\"none\" for a real run", "none");
  const bool overflows = !teaching.overflow_at.empty();
  if (overflows)
    findings.warn("teaching.overflow_at", "losses are deliberately made infinite",
                  counted(static_cast<std::int64_t>(teaching.overflow_at.size()), "micro-step"), "[] for a real run",
                  "[]");
  const auto& asked = spec.accumulation.knobs.overflow;
  const bool skips = spec.run.on_non_finite == NonFiniteRule::skip;
  if (asked && *asked != OverflowPolicy::raise && !skips)
    findings.note("run.on_non_finite", "is overridden by accumulation.overflow = " + quoted(*asked) +
                                           ", which skips windows with a non-finite gradient");
  const bool scaled = spec.optimizer.loss_scale.value_or(0.0) > 0.0 || spec.model.dtype == Dtype::float16;
  if (overflows && !asked && !scaled && !skips)
    findings.note("teaching.overflow_at",
                  "ends or pauses the run, as run.on_non_finite says; to skip the window instead, set "
                  "accumulation.overflow to \"hold\" or \"advance\"");
  if (teaching.overflow_rank >= spec.parallel.data)
    findings.error("teaching.overflow_rank", "there is no such rank", teaching.overflow_rank,
                   "less than parallel.data = " + std::to_string(spec.parallel.data));
}

void check_checkpoints(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const CheckpointScope scope = knobs.checkpoint_scope;
  if (spec.checkpoint.every_micro_steps == 0 || scope == CheckpointScope::anywhere) return;
  if (scope == CheckpointScope::boundary)
    return findings.note("checkpoint.every_micro_steps",
                         "waits for the end of the window each time, as the dialect " + dialect_name(spec) + " does");
  std::string message = "a run that resumes inside a window has lost the window's gradients";
  if (!keeps_place_in_window(knobs))
    message += " and its place there";
  else if (scope == CheckpointScope::counter_only)
    message += ", but keeps its place there";
  else
    message += ", but keeps its place there, since it counts iterations";
  findings.warn("checkpoint.every_micro_steps", message + ", as in the original",
                "checkpoint_scope " + std::string(to_name(scope)), "accumulation.checkpoint_scope = \"anywhere\"");
}

void check_length_knobs(const RunSpec& spec, Findings& findings) {
  const KnobOverrides& knobs = spec.accumulation.knobs;
  const auto& schedule = knobs.length_schedule;
  const GroupLength length = knobs.group_length.value_or(GroupLength::fixed);
  const auto only_with = [&](const char* key, bool set, bool fits, const char* lengths, const char* expected,
                             const char* fix) {
    if (set && !fits)
      findings.error(key, std::string("has an effect only with group_length ") + lengths, {},
                     std::string("accumulation.group_length = ") + expected, fix);
  };
  const auto needs = [&](const char* key, bool set, bool needed, const char* expected) {
    if (needed && !set) findings.error(key, "is missing, and group_length needs it", {}, expected);
  };
  const bool searches = length == GroupLength::memory_search;
  const bool global = length == GroupLength::global_batch;
  const bool scheduled = has_length_schedule(length);
  only_with("accumulation.memory_limit", knobs.memory_limit.has_value(), searches, "memory_search", "\"memory_search\"",
            "");
  only_with("accumulation.batch_rounding", knobs.batch_rounding.has_value(), global, "global_batch", "\"global_batch\"",
            "");
  needs("accumulation.length_schedule", !schedule.empty(), scheduled, "a list of rows [from, steps]");
  only_with("accumulation.length_schedule", !schedule.empty(), scheduled, "by_update or by_epoch",
            "\"by_update\" or \"by_epoch\"", "[]");
  only_with("accumulation.global_batch", knobs.global_batch.has_value(), global, "global_batch", "\"global_batch\"",
            "");
  needs("accumulation.global_batch", knobs.global_batch.has_value(), global, "samples an update over all ranks");
  if (std::ranges::adjacent_find(schedule, std::ranges::greater_equal(), &LengthChange::from) != schedule.end())
    findings.error("accumulation.length_schedule", "is not in rising order of its first numbers", {},
                   "each row to begin later than the one before");
  for (const LengthChange& change : schedule)
    if (change.steps > max_window_steps)
      findings.error("accumulation.length_schedule", "has a window that is too long", change.steps,
                     "at most " + counted(max_window_steps, "micro-step"));
}

void check_global_batch(const RunSpec& spec, Findings& findings) {
  const KnobOverrides& knobs = spec.accumulation.knobs;
  if (knobs.group_length != GroupLength::global_batch || !knobs.global_batch) return;
  const std::int64_t micro = spec.accumulation.micro_batch * spec.parallel.data;
  const std::int64_t batch = *knobs.global_batch;
  const BatchRounding rounding = knobs.batch_rounding.value_or(BatchRounding::error);
  const auto running = constant_batch(batch, micro, rounding == BatchRounding::decrease);
  if (running && running->samples == batch) return;
  if (running || rounding == BatchRounding::round || rounding == BatchRounding::fill)
    return findings.note("accumulation.global_batch", "is not a multiple of micro_batch x ranks = " +
                                                          std::to_string(micro) + ", and is rounded to one that is");
  findings.error("accumulation.global_batch", "is not a multiple of micro_batch x ranks", batch,
                 "a multiple of " + std::to_string(spec.accumulation.micro_batch) + " x " +
                     std::to_string(spec.parallel.data) + " = " + std::to_string(micro),
                 std::max<std::int64_t>(1, batch / micro) * micro);
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
  if (knobs.clip_stage == ClipStage::none)
    findings.warn("optimizer.clip_norm",
                  asked.clip_stage ? "is not applied: accumulation.clip_stage is \"none\""
                                   : "is not applied: the dialect " + dialect_name(spec) + " does not clip by itself",
                  spec_detail::real_text(spec.optimizer.clip_norm), "0, or accumulation.clip_stage = \"in_update\"",
                  "0");
  if (knobs.clip_stage == ClipStage::in_update && spec.accumulation.dialect == Dialect::colossalai && !asked.clip_stage)
    findings.note("optimizer.clip_norm",
                  "is applied at the boundary, as Colossal-AI's first version did; its later one clips in every "
                  "micro-step");
  if (knobs.clip_stage != ClipStage::every_micro_step) return;
  if (asked.normalize_when == NormalizeWhen::deferred && knobs.normalizer != Normalizer::none)
    findings.error("accumulation.normalize_when",
                   "divides at the boundary, but clip_stage = \"every_micro_step\" clips sums that are not divided yet",
                   "\"deferred\"", "\"eager\"", "eager");
  findings.warn("accumulation.clip_stage",
                "clips sums that are not finished yet, so the update differs from that of one large batch",
                "\"every_micro_step\"", "\"in_update\"", "in_update");
}

// K8 and K9 against the ranks' backend.
void check_reduction(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const std::int64_t ranks = spec.parallel.data;
  const std::int64_t steps = steps_of(spec.accumulation, ranks);
  if (ranks > 1 && knobs.reduce_when == ReduceWhen::never)
    findings.warn("accumulation.reduce_when", "the ranks never exchange gradients and train models of their own",
                  "\"never\" with " + counted(ranks, "rank"), "\"boundary\"", "boundary");
  if (ranks > 1 && knobs.reduce_when == ReduceWhen::every_micro_step && steps > 1)
    findings.note("accumulation.reduce_when",
                  "gives the same result as \"boundary\" for " + std::to_string(steps) + " times the traffic");
  if (ranks > 1 && counts_items(knobs) && knobs.normalizer_scope == NormalizerScope::rank)
    findings.warn("accumulation.normalizer_scope",
                  "each rank divides by its own count, so ranks with fewer items weigh more", "\"rank\"",
                  "\"data_parallel\"", "data_parallel");
  if (ranks > 1 && knobs.reduce_op == ReduceOp::sum && !counts_over_ranks(knobs))
    findings.warn("accumulation.reduce_op",
                  "adds gradients that each rank has divided already, so the update is " + std::to_string(ranks) +
                      " times as large as on one rank",
                  "\"sum\"", "\"mean\"", "mean");
}

// Knobs that are set without effect, or with another effect than their name says.
void check_effects(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const KnobOverrides& asked = spec.accumulation.knobs;
  const bool alone = spec.parallel.data == 1;
  const auto no_effect = [&findings](const char* key, bool set, const char* why) {
    if (set) findings.note(key, std::string("changes nothing here: ") + why);
  };
  const bool narrow = asked.no_sync_cover == NoSyncCover::backward;
  const bool each = knobs.reduce_when == ReduceWhen::every_micro_step && !asked.reduce_when && !alone;
  if (narrow && each)
    findings.note("accumulation.no_sync_cover",
                  "covers only the backward, but the forward before it decides whether to reduce: every micro-step "
                  "reduces");
  no_effect("accumulation.no_sync_cover", narrow && !each,
            alone ? "there is only one rank" : "reduce_when or the handlers decide when ranks reduce");
  no_effect("accumulation.no_sync_cover", asked.no_sync_cover == NoSyncCover::forward,
            "the forward decides whether the backward after it reduces");
  no_effect("accumulation.checkpoint_scope", asked.checkpoint_scope && spec.checkpoint.every_micro_steps == 0,
            "checkpoints are taken between two windows unless checkpoint.every_micro_steps is set");
  no_effect("accumulation.reduce_mechanism",
            asked.reduce_mechanism == ReduceMechanism::reducer && spec.teaching.bug != Bug::none,
            "a run with a bug of the gallery reduces after the backward");
  no_effect("accumulation.reduce_mechanism",
            asked.reduce_mechanism == ReduceMechanism::reducer && !spec.parallel.overlap_grad_reduce,
            "parallel.overlap_grad_reduce is off, so all buckets are reduced after the backward");
  const std::string after = reason_to_reduce_after(knobs);
  no_effect("parallel.overlap_grad_reduce", !alone && !spec.parallel.overlap_grad_reduce && !after.empty(),
            ("gradients are reduced after the backward in any case, since " + after).c_str());
  no_effect("accumulation.reduce_op", asked.reduce_op && alone, "there is only one rank");
  const bool counts = counts_items(knobs);
  no_effect("accumulation.normalizer_scope", asked.normalizer_scope && (!counts || alone),
            counts ? "there is only one rank" : "the normalizer counts neither samples nor tokens");
  if (knobs.schedule_clock == ScheduleClock::external && spec.schedule.kind != ScheduleKind::constant)
    findings.note("accumulation.schedule_clock",
                  "the schedule ticks at every call, which is once a micro-step, whatever the window does");
  if (counts && divides_when(knobs, spec.parallel.data) == NormalizeWhen::eager)
    findings.note("accumulation.normalize_when",
                  "the count of a window is known only at its end, so its batches are fetched and counted before its "
                  "first micro-step");
}

// A fault that no division can correct: a layer that normalises over a micro-batch.
void check_batch_norm(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const std::int64_t steps = steps_of(spec.accumulation, spec.parallel.data);
  const GroupLength length = knobs.group_length;
  const bool one = steps == 1 && (length == GroupLength::fixed || length == GroupLength::global_batch);
  if (spec.model.batch_norm && !one)
    findings.warn("model.batch_norm",
                  "takes its statistics from each micro-batch, so an update differs from that of one large batch",
                  counted(steps, "micro-step") + " of " + counted(spec.accumulation.micro_batch, "sample"),
                  "false, or accumulation.steps = 1", "false");
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
  check_rampup(spec, knobs, findings);
  check_clipping(spec, knobs, findings);
  check_reduction(spec, knobs, findings);
  check_effects(spec, knobs, findings);
  check_batch_norm(spec, knobs, findings);
}

}  // namespace accrue::preflight_detail
