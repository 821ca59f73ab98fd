// SPDX-License-Identifier: Apache-2.0
// The knobs (K1 to K17) by which the accumulation systems differ, and the five dialects, each a preset of all of them.
// K10, whose calls clear the gradients, is a choice of the C++ classes alone (accumulation_driver.h): a run's trainer
// clears after each update. A dialect is data: presets are one table (ACCRUE_KNOBS), so "what would X do" is a lookup.
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
/// K11: where gradients are clipped.
enum class ClipStage { in_update, every_micro_step, none };
enum class ClipKind { norm, value };
/// K12: after an overflow the window is discarded; the schedule then ...
enum class OverflowPolicy { hold, advance, raise };
/// K13: what moves the learning-rate schedule.
enum class ScheduleClock { update, update_times_world, micro_step, epoch, every_nth_call, external };
/// K14: ranks with different numbers of batches. join is a prepared loader's own and has no name in a spec: ranks that
/// have no batch left take part in what the others exchange.
enum class UnevenRanks { repeat, empty_micro_steps, drop, join };
/// K15
enum class CheckpointScope { boundary, anywhere, counter_only, nothing };
/// K16
enum class AccumulationDtype { parameter, float32, float32_compensated };
/// K17
enum class ReportedLoss { by_denominator, mean_of_micro, last_micro };

/// K1 global_batch where micro_batch x ranks does not divide it: refused, the nearest multiple, the next one up, or the
/// next one down.
enum class BatchRounding { error, round, fill, decrease };

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

/// Every knob once: its type, its name in the code and in a spec, and its value under each dialect, in the order of
/// Dialect. What the originals do was measured on them (llm.engine.accumulation, colossalai gradient_accumulation,
/// Accelerate 1.15, MMEngine 0.10.7); where one leaves a question to its caller, the value is that of its documented
/// loop. The two structs below, for_each_knob() and preset() come from this table.
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

/// All knobs, resolved: what the planner and the engine obey.
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

/// The spec's overrides: every member left empty keeps the dialect's preset.
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

/// The dialect's column of the table above, and K13's guard on total, which Accelerate alone has.
AccumulationKnobs preset(Dialect dialect);

/// The preset with the spec's overrides and the dialect's own keys (sync_with_dataloader, sync_each_batch, ...)
/// applied.
AccumulationKnobs resolve_knobs(const AccumulationSpec& spec);
/// The same for a whole spec: its bug of the gallery may turn a knob the wrong way, last of all.
AccumulationKnobs resolve_knobs(const RunSpec& spec);

/// The overrides that spell out every knob (K1's lists aside): under any dialect they come to these knobs.
KnobOverrides explicit_knobs(const AccumulationKnobs& knobs);

// What knobs mean. The planner, preflight, plans, the trainer and the studio all call these.

/// The largest N: a window's size is found by walking it.
inline constexpr std::int64_t max_window_steps = 1'048'576;

/// K1: N follows length_schedule.
bool has_length_schedule(GroupLength length);
/// K2: batches that fill no window are not trained on.
bool drops_tail(const AccumulationKnobs& knobs);
/// K2: such batches are fetched and dropped; else they are never seen.
bool fetches_dropped(const AccumulationKnobs& knobs);
/// K5: the window's samples or items divide, which only the data know.
bool counts_items(const AccumulationKnobs& knobs);
/// K5: they are counted over all ranks.
bool counts_over_ranks(const AccumulationKnobs& knobs);
/// K6 as it is done by that many ranks: a rank's own count has to divide before the ranks' gradients are added up.
NormalizeWhen divides_when(const AccumulationKnobs& knobs, std::int64_t ranks);
/// K13: the schedule moves at boundaries.
bool follows_updates(ScheduleClock clock);
/// K8: bytes of a gradient bucket. Handlers reduce all gradients of a type in one piece.
std::int64_t bucket_bytes(ReduceMechanism mechanism, double bucket_mb);
/// K16: bytes of a number in the gradient sum of parameters of that many bytes, the compensation term aside.
std::int64_t bytes_of_sum(AccumulationDtype accumulation, std::int64_t parameter_bytes);
/// Why N cannot be changed while the run trains; empty where it can.
std::string why_steps_stay(const RunSpec& spec);

}  // namespace accrue
