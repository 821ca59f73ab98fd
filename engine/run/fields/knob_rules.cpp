// SPDX-License-Identifier: Apache-2.0
// Answers questions about the knobs that several places ask, once.
#include <algorithm>

#include "accrue/run/fields/accumulation_knobs.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

bool has_length_schedule(GroupLength length) {
  return length == GroupLength::by_update || length == GroupLength::by_epoch;
}

bool drops_tail(const AccumulationKnobs& knobs) {
  return knobs.tail == EpochTail::drop_stop || fetches_dropped(knobs);
}

bool fetches_dropped(const AccumulationKnobs& knobs) {
  return knobs.tail == EpochTail::drop_drain;
}

bool counts_items(const AccumulationKnobs& knobs) {
  return knobs.normalizer == Normalizer::samples || knobs.normalizer == Normalizer::tokens;
}

bool counts_over_ranks(const AccumulationKnobs& knobs) {
  return counts_items(knobs) && knobs.normalizer_scope == NormalizerScope::data_parallel;
}

NormalizeWhen divides_when(const AccumulationKnobs& knobs, std::int64_t ranks) {
  const bool added_up = ranks > 1 && knobs.reduce_when != ReduceWhen::never;
  const bool own_count = counts_items(knobs) && knobs.normalizer_scope == NormalizerScope::rank;
  return added_up && own_count ? NormalizeWhen::eager : knobs.normalize_when;
}

bool follows_updates(ScheduleClock clock) {
  return clock == ScheduleClock::update || clock == ScheduleClock::update_times_world;
}

std::int64_t bucket_bytes(ReduceMechanism mechanism, double bucket_mb) {
  if (mechanism == ReduceMechanism::handlers) return std::int64_t{1} << 60;
  return static_cast<std::int64_t>(bucket_mb * 1024.0 * 1024.0);
}

std::int64_t bytes_of_sum(AccumulationDtype accumulation, std::int64_t parameter_bytes) {
  if (accumulation == AccumulationDtype::parameter) return parameter_bytes;
  return std::max<std::int64_t>(parameter_bytes, 4);
}

double epsilon_of(const OptimizerSpec& optimizer) {
  if (optimizer.eps) return *optimizer.eps;
  switch (optimizer.kind) {
    case OptimizerKind::fused_lamb:
    case OptimizerKind::lamb:
      return 1e-6;
    case OptimizerKind::lars:
      return 0.0;
    default:
      return 1e-8;
  }
}

std::int64_t moments_of(const OptimizerSpec& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::sgd:
    case OptimizerKind::fused_sgd:
    case OptimizerKind::lars:
      return optimizer.momentum > 0.0 ? 1 : 0;
    default:
      return 2;
  }
}

bool keeps_states_in_files(const OptimizerSpec& optimizer) {
  return optimizer.kind == OptimizerKind::cpu_adam || optimizer.kind == OptimizerKind::hybrid_adam;
}

bool takes_parameter_norms(OptimizerKind kind) {
  return kind == OptimizerKind::lamb || kind == OptimizerKind::fused_lamb || kind == OptimizerKind::lars;
}

bool has_end(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::linear:
    case ScheduleKind::cosine:
    case ScheduleKind::wsd:
      return true;
    case ScheduleKind::constant:
    case ScheduleKind::inverse_square_root:
    case ScheduleKind::exponential:
      return false;
  }
  return false;
}

bool has_lowest_rate(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::linear:
    case ScheduleKind::cosine:
    case ScheduleKind::wsd:
    case ScheduleKind::inverse_square_root:
    case ScheduleKind::exponential:
      return true;
    case ScheduleKind::constant:
      return false;
  }
  return false;
}

std::string why_steps_stay(const RunSpec& spec) {
  const Dialect dialect = spec.accumulation.dialect;
  if (dialect != Dialect::accrue && dialect != Dialect::accelerate)
    return "the dialect " + std::string(to_name(dialect)) +
           " has one N for the whole run; accrue and accelerate can change it";
  if (!spec.accumulation.rampup.empty()) return "accumulation.rampup sets N";
  if (resolve_knobs(spec).normalizer == Normalizer::run_remainder)
    return "normalizer = \"run_remainder\" divides by what the planned N leaves over, so N stays as it is";
  return {};
}

}  // namespace accrue
