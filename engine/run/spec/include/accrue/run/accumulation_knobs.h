// SPDX-License-Identifier: Apache-2.0
// The eighteen knobs (K1..K18) by which the accumulation systems differ, and the five dialects, each a preset of all of
// them. A dialect is data: presets live in one table (accumulation_presets.cpp), so "what would X do" is a lookup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

enum class Dialect { accrue, llm, colossalai, accelerate, mmengine };

/// K1: where a window's length comes from.
enum class GroupLength { fixed, by_update, by_epoch, global_batch, memory_search };
/// K2: what becomes of the L mod N batches at the end of an epoch.
enum class EpochTail { carry, drop_stop, drop_drain, flush, pad_repeat };
/// K3: what becomes of an open window at the end of the run.
enum class RunTail { discard, flush };
/// K4: when the window's position goes back to zero apart from an update.
enum class CounterReset { never, epoch_end, at_flush };
/// K5: what the window's loss is divided by.
enum class Normalizer { none, steps, true_size, run_remainder, samples, tokens };
/// K5: over which ranks samples or tokens are counted.
enum class NormalizerScope { rank, data_parallel };
/// K6
enum class NormalizeWhen { eager, deferred };
/// K7: how the boundary is recognised.
enum class BoundaryCompare { exact, at_least, modulo, plan };
/// K8: when, how and by what gradients are reduced.
enum class ReduceWhen { boundary, every_micro_step, never };
enum class ReduceOp { mean, sum };
/// K8. reducer: each bucket as soon as backward has filled it. post_backward: bucket by bucket after the last backward.
/// handlers: after it, all of a type in one piece.
enum class ReduceMechanism { reducer, post_backward, handlers };
/// K9: what the no-sync scope covers (communication, not results).
enum class NoSyncCover { forward_backward, forward, backward };
/// K10: who clears gradients.
enum class ClearGradients { engine, user_if_empty, user_if_boundary };
/// K11
enum class ClipStage { in_update, separate_stage, every_micro_step, backend, none };
enum class ClipKind { norm, value };
/// K12: after an overflow the window is discarded; the schedule then ...
enum class OverflowPolicy { hold, advance, raise };
/// K13: what moves the learning-rate schedule.
enum class ScheduleClock { update, update_times_world, micro_step, epoch, every_nth_call, external };
/// K14: ranks with different numbers of batches.
enum class UnevenRanks { repeat, empty_micro_steps, join, drop };
/// K15
enum class CheckpointScope { boundary, anywhere, counter_only, nothing };
/// K16
enum class AccumulationDtype { parameter, float32, float32_compensated };
/// K17
enum class ReportedLoss { by_denominator, mean_of_micro, last_micro };
/// K18
enum class Validation { none, positive, clash, handler_type, full };

/// K1 global_batch where micro_batch x ranks does not divide it: refused, the nearest multiple, or the next one up.
enum class BatchRounding { error, round, fill };

/// Defects of the originals that a run can reproduce on purpose, so that an upstream run can be compared. Each exists
/// in the dialects that have it, and is off unless named.
enum class Replay {
  scheduler_state,       ///< llm: a resumed run trains on at the rate of the resume while its schedule goes on
  clip_partial_sums,     ///< colossalai: the running sum is clipped in every micro-step, and clip_norm 0 zeroes it
  drain_early,           ///< colossalai: the loader loses the last batch it should have kept
  adjust_scheduler,      ///< accelerate: adjust_scheduler does what its documentation says
  zero_before_backward,  ///< accelerate: gradients are zeroed on the boundary before its backward
  restart_count,         ///< mmengine: a resume counts from 0 towards the same max_iters
  narrow_no_sync,        ///< llm, colossalai, mmengine: no_sync covers too little, so every micro-step reduces
};
/// Whether that dialect's original has the defect.
bool has_defect(Dialect dialect, Replay defect);

/// One entry of a length schedule (K1 by_update, by_epoch): from this update or epoch on, windows have this many
/// micro-steps.
struct LengthChange {
  std::int64_t from = 0;
  std::int64_t steps = 1;
  bool operator==(const LengthChange&) const = default;
};

/// All knobs, resolved: what the planner and the engine obey.
struct AccumulationKnobs {
  GroupLength group_length = GroupLength::fixed;
  EpochTail tail = EpochTail::flush;
  RunTail run_tail = RunTail::flush;
  CounterReset counter_reset = CounterReset::at_flush;
  Normalizer normalizer = Normalizer::tokens;
  NormalizerScope normalizer_scope = NormalizerScope::data_parallel;
  NormalizeWhen normalize_when = NormalizeWhen::deferred;
  BoundaryCompare boundary_compare = BoundaryCompare::plan;
  ReduceWhen reduce_when = ReduceWhen::boundary;
  ReduceOp reduce_op = ReduceOp::sum;
  ReduceMechanism reduce_mechanism = ReduceMechanism::post_backward;
  NoSyncCover no_sync_cover = NoSyncCover::forward_backward;
  ClearGradients clear_gradients = ClearGradients::engine;
  ClipStage clip_stage = ClipStage::in_update;
  ClipKind clip_kind = ClipKind::norm;
  OverflowPolicy overflow = OverflowPolicy::hold;
  ScheduleClock schedule_clock = ScheduleClock::update;
  bool total_guard = false;  ///< K13 extra: inner steps stop at the schedule's total
  bool micro_bump = false;   ///< K13 extra, replay only: the documented effect of adjust_scheduler
  UnevenRanks uneven_ranks = UnevenRanks::empty_micro_steps;
  CheckpointScope checkpoint_scope = CheckpointScope::anywhere;
  AccumulationDtype accumulation_dtype = AccumulationDtype::float32;
  ReportedLoss reported_loss = ReportedLoss::by_denominator;
  Validation validation = Validation::full;
  std::vector<Replay> replay;  ///< defects reproduced on purpose
  bool replays(Replay defect) const;
  bool operator==(const AccumulationKnobs&) const = default;
};

/// The spec's overrides: every member left empty keeps the dialect's preset.
struct KnobOverrides {
  std::optional<GroupLength> group_length;
  std::vector<LengthChange> length_schedule;  ///< K1 by_update and by_epoch
  std::optional<std::int64_t> global_batch;   ///< K1 global_batch: samples per update over all ranks
  std::optional<BatchRounding> batch_rounding;
  std::optional<double> memory_limit;  ///< K1 memory_search: MiB per rank
  std::optional<EpochTail> tail;
  std::optional<RunTail> run_tail;
  std::optional<CounterReset> counter_reset;
  std::optional<Normalizer> normalizer;
  std::optional<NormalizerScope> normalizer_scope;
  std::optional<NormalizeWhen> normalize_when;
  std::optional<BoundaryCompare> boundary_compare;
  std::optional<ReduceWhen> reduce_when;
  std::optional<ReduceOp> reduce_op;
  std::optional<ReduceMechanism> reduce_mechanism;
  std::optional<NoSyncCover> no_sync_cover;
  std::optional<ClearGradients> clear_gradients;
  std::optional<ClipStage> clip_stage;
  std::optional<ClipKind> clip_kind;
  std::optional<OverflowPolicy> overflow;
  std::optional<ScheduleClock> schedule_clock;
  std::optional<UnevenRanks> uneven_ranks;
  std::optional<CheckpointScope> checkpoint_scope;
  std::optional<AccumulationDtype> accumulation_dtype;
  std::optional<ReportedLoss> reported_loss;
  std::optional<Validation> validation;
  bool operator==(const KnobOverrides&) const = default;
};

struct AccumulationSpec;
struct RunSpec;

/// The preset of a dialect.
/// Source: the table of what each upstream system does (llm.engine.accumulation, colossalai gradient_accumulation,
/// accelerate 1.15, mmengine 0.10.7) and Accrue's own defaults.
AccumulationKnobs preset(Dialect dialect);

/// The preset with the spec's overrides and the dialect's own keys (sync_with_dataloader, sync_each_batch, ...)
/// applied.
AccumulationKnobs resolve_knobs(const AccumulationSpec& spec);
/// The same for a whole spec: its bug of the gallery may turn a knob the wrong way, last of all.
AccumulationKnobs resolve_knobs(const RunSpec& spec);

/// The overrides that spell out every knob (K1's lists aside): under any dialect they come to these knobs.
KnobOverrides explicit_knobs(const AccumulationKnobs& knobs);

}  // namespace accrue
