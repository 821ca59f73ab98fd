// SPDX-License-Identifier: Apache-2.0
// Knobs (K1 to K17) in which the accumulation systems differ, and the five dialects, each a preset of all of them. K10,
// who clears the gradients, is a choice of the C++ classes alone (accumulation_driver.h): a run's trainer clears after
// each update. A dialect is data: the presets are one table (ACCRUE_KNOBS), so its behaviour is a look-up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

enum class Dialect { accrue, llm, colossalai, accelerate, mmengine };

/// K1: source of a window's length.
enum class GroupLength { fixed, by_update, by_epoch, global_batch, memory_search };
/// K2: treatment of the L mod N batches at the end of an epoch.
enum class EpochTail { carry, drop_stop, drop_drain, flush, pad_repeat };
/// K3: treatment of an open window at the end of the run.
enum class RunTail { discard, flush };
/// K4: when the window's position is reset, other than by an update.
enum class CounterReset { never, epoch_end, at_flush };
/// K5: divisor of the window's loss.
enum class Normalizer { none, steps, true_size, run_remainder, samples, tokens };
/// K5: ranks over which samples or tokens are counted.
enum class NormalizerScope { rank, data_parallel };
/// K6: when the division takes place.
enum class NormalizeWhen { eager, deferred };
/// K7: test for a boundary.
enum class BoundaryCompare { exact, at_least, modulo, plan };
/// K8: when gradients are reduced.
enum class ReduceWhen { boundary, every_micro_step, never };
enum class ReduceOp { mean, sum };
/// K8: how gradients are reduced. reducer: each bucket as soon as backward has filled it. post_backward: bucket by
/// bucket after the last backward. handlers: after it, all of a type in one piece.
enum class ReduceMechanism { reducer, post_backward, handlers };
/// K9: scope of no-sync (affects communication, not results).
enum class NoSyncCover { forward_backward, forward, backward };
/// K11: where gradients are clipped.
enum class ClipStage { in_update, every_micro_step, none };
enum class ClipKind { norm, value };
/// K12: effect of an overflow on the schedule. The window is always discarded.
enum class OverflowPolicy { hold, advance, raise };
/// K13: clock of the learning-rate schedule.
enum class ScheduleClock { update, update_times_world, micro_step, epoch, every_nth_call, external };
/// K14: ranks with different numbers of batches. join belongs to a prepared loader alone and has no name in a spec:
/// ranks without a batch still take part in the collectives of the others.
enum class UnevenRanks { repeat, empty_micro_steps, drop, join };
/// K15: where checkpoints can be taken.
enum class CheckpointScope { boundary, anywhere, counter_only, nothing };
/// K16: number type of the gradient sum.
enum class AccumulationDtype { parameter, float32, float32_compensated };
/// K17: how the loss is reported.
enum class ReportedLoss { by_denominator, mean_of_micro, last_micro };

/// K1 global_batch that is not a multiple of micro_batch x ranks: refused, or rounded to the nearest, next higher or
/// next lower multiple.
enum class BatchRounding { error, round, fill, decrease };

/// Defects of the originals that a run can reproduce on purpose, for comparison with an upstream run. Each exists in
/// certain dialects, and is off unless named.
enum class Replay {
  scheduler_state,       ///< llm: a resumed run keeps the rate of the resume while its schedule advances
  clip_partial_sums,     ///< colossalai: the running sum is clipped in every micro-step, and clip_norm 0 zeroes it
  drain_early,           ///< colossalai: the loader loses the last batch it should have kept
  adjust_scheduler,      ///< accelerate: adjust_scheduler does what its documentation says
  zero_before_backward,  ///< accelerate: gradients are zeroed on the boundary before its backward
  restart_count,         ///< mmengine: a resume counts from 0 towards the same max_iters
  narrow_no_sync,        ///< llm, colossalai, mmengine: no_sync covers too little, so every micro-step reduces
};
/// Whether the dialect's original has the defect.
bool has_defect(Dialect dialect, Replay defect);

/// One entry of a length schedule (K1 by_update, by_epoch): from this update or epoch on, windows have this many
/// micro-steps.
struct LengthChange {
  std::int64_t from = 0;
  std::int64_t steps = 1;
  bool operator==(const LengthChange&) const = default;
};

/// Every knob once: its type, its name in code and specs, and its value under each dialect, in the order of Dialect.
/// The values were measured on the originals (llm.engine.accumulation, colossalai gradient_accumulation, Accelerate
/// 1.15, MMEngine 0.10.7). If a system leaves a choice to its caller, the value is that of its documented loop. The two
/// structs below, for_each_knob() and preset() come from this table.
#define ACCRUE_KNOBS(KNOB)                                                                                    \
  KNOB(GroupLength, group_length, fixed, fixed, fixed, fixed, fixed)                                          \
  KNOB(EpochTail, tail, flush, carry, drop_stop, flush, carry)                                                \
  KNOB(RunTail, run_tail, flush, discard, discard, flush, flush)                                              \
  KNOB(CounterReset, counter_reset, at_flush, never, never, at_flush, never)                                  \
  KNOB(Normalizer, normalizer, tokens, steps, steps, steps, run_remainder)                                    \
  KNOB(NormalizerScope, normalizer_scope, data_parallel, rank, rank, rank, rank)                              \
  KNOB(NormalizeWhen, normalize_when, deferred, eager, eager, eager, eager)                                   \
  KNOB(BoundaryCompare, boundary_compare, plan, exact, at_least, modulo, modulo)                              \
  KNOB(ReduceWhen, reduce_when, boundary, boundary, boundary, boundary, boundary)                             \
  KNOB(ReduceOp, reduce_op, sum, mean, mean, mean, mean)                                                      \
  KNOB(ReduceMechanism, reduce_mechanism, post_backward, reducer, reducer, reducer, reducer)                  \
  KNOB(NoSyncCover, no_sync_cover, forward_backward, backward, backward, forward_backward, forward)           \
  KNOB(ClipStage, clip_stage, in_update, in_update, in_update, in_update, none)                               \
  KNOB(ClipKind, clip_kind, norm, norm, norm, norm, norm)                                                     \
  KNOB(OverflowPolicy, overflow, hold, advance, advance, hold, advance)                                       \
  KNOB(ScheduleClock, schedule_clock, update, every_nth_call, every_nth_call, update_times_world, micro_step) \
  KNOB(UnevenRanks, uneven_ranks, empty_micro_steps, repeat, drop, repeat, repeat)                            \
  KNOB(CheckpointScope, checkpoint_scope, anywhere, boundary, nothing, counter_only, nothing)                 \
  KNOB(AccumulationDtype, accumulation_dtype, float32, parameter, parameter, parameter, parameter)            \
  KNOB(ReportedLoss, reported_loss, by_denominator, by_denominator, by_denominator, by_denominator, by_denominator)

/// All knobs, resolved, for the planner and the engine.
struct AccumulationKnobs {
#define ACCRUE_KNOB_MEMBER(Type, name, accrue, ...) Type name = Type::accrue;
  ACCRUE_KNOBS(ACCRUE_KNOB_MEMBER)
#undef ACCRUE_KNOB_MEMBER
  bool total_guard = false;    ///< K13 extra: inner steps stop at the schedule's total
  bool micro_bump = false;     ///< K13 extra, replay only: the documented effect of adjust_scheduler
  std::vector<Replay> replay;  ///< defects reproduced on purpose
  bool replays(Replay defect) const;
  bool operator==(const AccumulationKnobs&) const = default;
};

/// Overrides of a spec: every empty member keeps the dialect's preset.
struct KnobOverrides {
#define ACCRUE_KNOB_OVERRIDE(Type, name, ...) std::optional<Type> name;
  ACCRUE_KNOBS(ACCRUE_KNOB_OVERRIDE)
#undef ACCRUE_KNOB_OVERRIDE
  std::vector<LengthChange> length_schedule;  ///< K1 by_update and by_epoch
  std::optional<std::int64_t> global_batch;   ///< K1 global_batch: samples per update over all ranks
  std::optional<BatchRounding> batch_rounding;
  std::optional<double> memory_limit;  ///< K1 memory_search: MiB per rank
  bool operator==(const KnobOverrides&) const = default;
};

/// Calls visit(name, member of AccumulationKnobs, member of KnobOverrides) for every knob, K1 first.
template <typename Visit>
void for_each_knob(Visit&& visit) {
#define ACCRUE_KNOB_VISIT(Type, name, ...) visit(#name, &AccumulationKnobs::name, &KnobOverrides::name);
  ACCRUE_KNOBS(ACCRUE_KNOB_VISIT)
#undef ACCRUE_KNOB_VISIT
}

struct AccumulationSpec;
struct RunSpec;

/// Returns the dialect's column of the table above, and K13's guard on total, which only Accelerate has.
AccumulationKnobs preset(Dialect dialect);

/// Returns the preset after the spec's overrides and the dialect's own keys (sync_with_dataloader, sync_each_batch,
/// ...).
AccumulationKnobs resolve_knobs(const AccumulationSpec& spec);
/// Does the same for a whole spec. Its bug of the gallery may change a knob last.
AccumulationKnobs resolve_knobs(const RunSpec& spec);

/// Returns overrides that spell out every knob (except K1's lists): under any dialect they resolve to these knobs.
KnobOverrides explicit_knobs(const AccumulationKnobs& knobs);

// Meaning of the knobs. The planner, preflight, plans, the trainer and the studio all call these functions.

/// Maximum N. A window's size is found by walking it.
inline constexpr std::int64_t max_window_steps = 1'048'576;

/// K1: N follows length_schedule.
bool has_length_schedule(GroupLength length);
/// K2: batches that fill no window are not trained on.
bool drops_tail(const AccumulationKnobs& knobs);
/// K2: such batches are fetched and dropped; else they are never seen.
bool fetches_dropped(const AccumulationKnobs& knobs);
/// K5: the divisor is the window's samples or items, which only the data give.
bool counts_items(const AccumulationKnobs& knobs);
/// K5: they are counted over all ranks.
bool counts_over_ranks(const AccumulationKnobs& knobs);
/// K6 as `ranks` ranks do it: a rank's own count must divide before the ranks' gradients are summed.
NormalizeWhen divides_when(const AccumulationKnobs& knobs, std::int64_t ranks);
/// K13: the schedule moves at boundaries.
bool follows_updates(ScheduleClock clock);
/// K8: bytes of a gradient bucket. handlers reduces all gradients of a type in one piece.
std::int64_t bucket_bytes(ReduceMechanism mechanism, double bucket_mb);
/// K16: bytes of a number in the gradient sum, without the compensation term, for parameters of `parameter_bytes`
/// bytes.
std::int64_t bytes_of_sum(AccumulationDtype accumulation, std::int64_t parameter_bytes);
/// Returns why N cannot be changed during the run; empty if it can.
std::string why_steps_stay(const RunSpec& spec);

}  // namespace accrue
