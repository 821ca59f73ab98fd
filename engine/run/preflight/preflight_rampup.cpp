// SPDX-License-Identifier: Apache-2.0
// Checks of accumulation.rampup: a ramp that reaches the full batch in whole micro-steps, and its exclusions.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "accrue/run/window/pipeline_schedule.h"
#include "preflight_checks.h"
#include "window_length.h"

namespace accrue::preflight_detail {

namespace {

std::string text_of(const RampUp& ramp) {
  return fmt::format("[{}, {}, {}]", ramp.first, ramp.increment, ramp.samples);
}

// Returns a ramp of the same length that reaches the full batch in whole micro-steps; none if there is none.
Text mended(const RampUp& ramp, std::int64_t micro) {
  RampUp near = ramp;
  near.first = std::max(ramp.first / micro, std::int64_t{1}) * micro;
  if (near.first >= ramp.full) near.first = micro;
  near.increment = std::max(ramp.increment / micro, std::int64_t{1}) * micro;
  if ((ramp.full - near.first) % near.increment != 0) near.increment = micro;
  return ramp_problem(near).empty() ? Text(text_of(near)) : Text("[]");
}

// Window lengths that something else also sets.
void check_lengths(const AccumulationKnobs& knobs, Findings& findings) {
  const GroupLength length = knobs.group_length;
  if (length != GroupLength::fixed && length != GroupLength::global_batch)
    findings.error("accumulation.group_length", "sets the length of windows, and so does accumulation.rampup",
                   quoted(length), "\"fixed\" or \"global_batch\"", "fixed");
  if (knobs.boundary_compare == BoundaryCompare::modulo)
    findings.error("accumulation.boundary_compare",
                   "takes a running count modulo N, and N grows with accumulation.rampup", "\"modulo\"", "\"plan\"",
                   "plan");
  if (knobs.normalizer == Normalizer::run_remainder)
    findings.error("accumulation.normalizer",
                   "divides by what N leaves over of the run, and N grows with accumulation.rampup",
                   "\"run_remainder\"", "\"true_size\"", "true_size");
  if (knobs.replays(Replay::drain_early))
    findings.error("accumulation.replay", "\"drain_early\" cuts an epoch by N, which grows with accumulation.rampup",
                   "\"drain_early\"", "a list without it");
}

// A position is an update, and updates grow: a warm-up or a decay in positions would be stretched.
void check_positions(const ScheduleSpec& schedule, Findings& findings) {
  const bool moves = schedule.kind != ScheduleKind::constant || schedule.warmup > 0 || schedule.warmup_fraction;
  if (schedule.clock == RateClock::positions && moves)
    findings.error("schedule.clock",
                   "counts positions, of which the first have fewer samples where accumulation.rampup is set",
                   "\"positions\"", "\"samples\"", "samples");
}

bool interleaves(const ParallelSpec& parallel, std::int64_t micro_steps) {
  return pipeline_shape(parallel, micro_steps).schedule == PipelineSchedule::interleaved;
}

bool fills_groups(const ParallelSpec& parallel, const RampUp& ramp, std::int64_t micro) {
  for (std::int64_t batch = ramp.first; batch < ramp.full; batch += ramp.increment)
    if (!interleaves(parallel, batch / micro)) return false;
  return true;
}

}  // namespace

void check_rampup(const RunSpec& spec, const AccumulationKnobs& knobs, Findings& findings) {
  const AccumulationSpec& accumulation = spec.accumulation;
  if (accumulation.rampup.empty()) return;
  const auto ramp = ramp_of(accumulation, spec.parallel.data);
  if (!ramp)
    return findings.error("accumulation.rampup", "does not hold three numbers",
                          static_cast<std::int64_t>(accumulation.rampup.size()), "[first, increment, samples]", "[]");
  const std::int64_t micro = accumulation.micro_batch * spec.parallel.data;
  const std::int64_t group = interleaves(spec.parallel, steps_of(accumulation, spec.parallel.data))
                                 ? spec.parallel.pipeline_group.value_or(spec.parallel.pipeline)
                                 : 1;
  const std::int64_t unit = micro * group;
  const bool one_increment = ramp->full - ramp->first == ramp->increment;
  if (const std::string_view problem = ramp_problem(*ramp); !problem.empty())
    findings.error("accumulation.rampup", std::string(problem), text_of(*ramp),
                   fmt::format("a start below {}, from which the increment comes to it", ramp->full),
                   mended(*ramp, unit));
  else if (ramp->first % micro != 0 || (ramp->increment % micro != 0 && !one_increment))
    findings.error("accumulation.rampup", "is not in multiples of micro_batch x ranks", text_of(*ramp),
                   fmt::format("a start and an increment that {} divides", unit), mended(*ramp, unit));
  else if (group > 1 && !fills_groups(spec.parallel, *ramp, micro))
    findings.error("accumulation.rampup", "comes to a batch that does not fill the groups of the interleaved pipeline",
                   text_of(*ramp), fmt::format("a start and an increment that {} divides", unit), mended(*ramp, unit));
  check_lengths(knobs, findings);
  check_positions(spec.schedule, findings);
}

}  // namespace accrue::preflight_detail
