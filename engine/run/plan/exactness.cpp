// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/plan/exactness.h"

#include <cmath>
#include <iterator>

#include "accrue/run/base/name_of.h"

namespace accrue {

namespace {

struct Reason {
  std::string_view name;
  std::string_view sentence;
};

/// In the order of ExactnessReason.
constexpr Reason reasons[] = {
    {"", ""},
    {"order_of_sums", "Only the order of the additions differs."},
    {"batch_norm", "Batch norm takes its statistics from each micro-batch, so no accumulation can equal one batch."},
    {"dropout", "Dropout draws for each micro-step, so one batch drops other units."},
    {"divisor", "The sum of the window is divided by the wrong number, or by none."},
    {"tail_policy", "A window with fewer micro-steps is divided by N all the same, so its samples count less."},
    {"mean_of_means", "Every micro-step counts equally, although they hold different numbers of items."},
    {"weighed_by_samples",
     "Micro-steps count in proportion to their samples, although these hold different numbers of items."},
    {"own_size", "The loss is scaled by the micro-batch's own size, so the result depends on how samples are split."},
    {"cleared", "Gradients were cleared inside the window: only its last micro-step counts."},
    {"left_out", "A micro-step is missing from the sum, and the divisor counts it."},
    {"clipped", "Sums that were not finished were clipped."},
    {"repeated_samples", "Samples were repeated to fill up the last batch and count twice."},
    {"ranks_differ", "The ranks hold different gradients: the last micro-step of the window was not reduced."},
    {"part_not_reduced",
     "The ranks hold different gradients for some parameters, which were left out of the reduction."},
    {"wasted_reductions", "Gradients were exchanged more often than once a window, for the same result."},
    {"schedule_clock", "The sum is right, but the learning-rate schedule counts micro-steps and ends too early."},
    {"coupled_samples",
     "A sample's loss depends on the other samples of its micro-batch, so several micro-batches have another loss than "
     "one batch."},
    {"own_buffers", "The loss reads buffers that every forward changes, so it depends on the number of micro-steps."},
    {"unrepeatable",
     "Two passes over the same samples have different gradients: the model draws random numbers that the run's seed "
     "does "
     "not fix, or draws them in evaluation mode too."},
    {"bug_idle", "The bug has nothing to act on in this window."},
    {"unexplained", "None of the known reasons accounts for the difference."},
};
static_assert(std::size(reasons) == static_cast<std::size_t>(ExactnessReason::unexplained) + 1, "one row a reason");

}  // namespace

std::string_view to_string(Exactness exactness) {
  return name_of<Exactness::different>(exactness, {"exact", "close", "not"});
}

std::string_view to_string(ExactnessReason reason) {
  return reasons[static_cast<std::size_t>(reason)].name;
}

std::string_view explain(ExactnessReason reason) {
  return reasons[static_cast<std::size_t>(reason)].sentence;
}

double exactness_tolerance(Dtype dtype) {
  constexpr double tolerances[] = {1e-5, 1e-12, 3e-2, 5e-3};  // float32, float64, bfloat16, float16
  static_assert(std::size(tolerances) == static_cast<std::size_t>(Dtype::float16) + 1, "one a type");
  return tolerances[static_cast<std::size_t>(dtype)];
}

Exactness judge(const ExactnessFigures& figures, double tolerance, ExactnessReason reason) {
  if (std::isfinite(figures.relative) && figures.relative <= tolerance && reason != ExactnessReason::ranks_differ &&
      reason != ExactnessReason::part_not_reduced)
    return Exactness::exact;
  const bool no_mistake = reason == ExactnessReason::order_of_sums || reason == ExactnessReason::batch_norm ||
                          reason == ExactnessReason::dropout;
  return no_mistake ? Exactness::close : Exactness::different;
}

}  // namespace accrue
