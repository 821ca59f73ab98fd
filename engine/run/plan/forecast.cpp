// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/plan/forecast.h"

namespace accrue {

namespace {

/// Score of an earlier run as a predictor of the spec's pace; 0: useless.
int nearness(const RunSpec& spec, const EarlierRun& run) {
  if (run.seconds <= 0.0 || run.samples < 1 || !trains_alike(spec, run.spec)) return 0;
  if (run.spec.accumulation.micro_batch != spec.accumulation.micro_batch) return 1;
  return run.spec.accumulation.steps == spec.accumulation.steps ? 3 : 2;
}

/// Whether the same library parts compute, if any are named.
bool same_parts(const MegatronSpec& left, const MegatronSpec& right) {
  return left.custom_model_provider_function == right.custom_model_provider_function &&
         left.custom_prepare_model_function == right.custom_prepare_model_function &&
         left.custom_train_step_class == right.custom_train_step_class &&
         left.custom_loss_function == right.custom_loss_function;
}

}  // namespace

bool trains_alike(const RunSpec& left, const RunSpec& right) {
  return left.model == right.model && left.data.kind == right.data.kind && left.parallel == right.parallel &&
         left.launch.device == right.launch.device && left.launch.threads_per_rank == right.launch.threads_per_rank &&
         same_parts(left.megatron, right.megatron);
}

bool cost_is_known(const RunSpec& spec) {
  return !spec.megatron.custom_model_provider_function;
}

bool holds_alike(const RunSpec& left, const RunSpec& right) {
  return trains_alike(left, right) && left.optimizer.kind == right.optimizer.kind &&
         left.accumulation.micro_batch == right.accumulation.micro_batch &&
         left.accumulation.steps == right.accumulation.steps;
}

std::optional<TimeForecast> forecast_time(const RunSpec& spec, std::int64_t samples,
                                          std::span<const EarlierRun> earlier) {
  const EarlierRun* nearest = nullptr;
  int best = 0;
  for (const EarlierRun& run : earlier) {
    const int near = nearness(spec, run);
    if (near <= best) continue;
    best = near;
    nearest = &run;
  }
  if (!nearest) return std::nullopt;
  const double each = nearest->seconds / static_cast<double>(nearest->samples);
  return TimeForecast{each * static_cast<double>(samples), nearest->name, best > 1};
}

}  // namespace accrue
