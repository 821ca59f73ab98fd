// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/exactness.h"

#include <cmath>

namespace accrue {

std::string_view to_string(Exactness exactness) {
  switch (exactness) {
    case Exactness::exact:
      return "exact";
    case Exactness::close:
      return "close";
    case Exactness::different:
      return "not";
  }
  return "not";
}

std::string_view to_string(ExactnessReason reason) {
  switch (reason) {
    case ExactnessReason::none:
      return "";
    case ExactnessReason::order_of_sums:
      return "order_of_sums";
    case ExactnessReason::batch_norm:
      return "batch_norm";
    case ExactnessReason::dropout:
      return "dropout";
    case ExactnessReason::divisor:
      return "divisor";
    case ExactnessReason::tail_policy:
      return "tail_policy";
    case ExactnessReason::mean_of_means:
      return "mean_of_means";
    case ExactnessReason::weighed_by_samples:
      return "weighed_by_samples";
    case ExactnessReason::own_size:
      return "own_size";
    case ExactnessReason::cleared:
      return "cleared";
    case ExactnessReason::left_out:
      return "left_out";
    case ExactnessReason::clipped:
      return "clipped";
    case ExactnessReason::repeated_samples:
      return "repeated_samples";
    case ExactnessReason::ranks_differ:
      return "ranks_differ";
    case ExactnessReason::part_not_reduced:
      return "part_not_reduced";
    case ExactnessReason::wasted_reductions:
      return "wasted_reductions";
    case ExactnessReason::schedule_clock:
      return "schedule_clock";
    case ExactnessReason::unexplained:
      return "unexplained";
  }
  return "unexplained";
}

std::string_view explain(ExactnessReason reason) {
  switch (reason) {
    case ExactnessReason::none:
      return "";
    case ExactnessReason::order_of_sums:
      return "Only the order of the additions differs.";
    case ExactnessReason::batch_norm:
      return "Batch norm takes its statistics from each micro-batch, so no accumulation can equal one batch.";
    case ExactnessReason::dropout:
      return "Dropout draws for each micro-step, so one batch drops other units.";
    case ExactnessReason::divisor:
      return "The sum of the window is divided by the wrong number, or by none.";
    case ExactnessReason::tail_policy:
      return "A window with fewer micro-steps is divided by N all the same, so its samples weigh less.";
    case ExactnessReason::mean_of_means:
      return "Every micro-step weighs alike, although they hold different numbers of items.";
    case ExactnessReason::weighed_by_samples:
      return "Micro-steps weigh by their samples, although these hold different numbers of items.";
    case ExactnessReason::own_size:
      return "The loss is scaled by the micro-batch's own size, so the result depends on how samples are cut.";
    case ExactnessReason::cleared:
      return "Gradients were cleared inside the window: only its last micro-step counts.";
    case ExactnessReason::left_out:
      return "A micro-step is missing from the sum, and the divisor counts it.";
    case ExactnessReason::clipped:
      return "Sums that were not finished were clipped.";
    case ExactnessReason::repeated_samples:
      return "Samples were repeated to fill up the last batch and count twice.";
    case ExactnessReason::ranks_differ:
      return "The ranks hold different gradients: the last micro-step of the window was not reduced.";
    case ExactnessReason::part_not_reduced:
      return "The ranks hold different gradients for some parameters, which were left out of the reduction.";
    case ExactnessReason::wasted_reductions:
      return "Gradients were exchanged more often than once a window, for the same result.";
    case ExactnessReason::schedule_clock:
      return "The learning-rate schedule moves at another pace than planned.";
    case ExactnessReason::unexplained:
      return "None of the known reasons accounts for the difference.";
  }
  return "";
}

double exactness_tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::float64:
      return 1e-12;
    case Dtype::float32:
      return 1e-5;
    case Dtype::bfloat16:
      return 3e-2;
    case Dtype::float16:
      return 5e-3;
  }
  return 0.0;
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
