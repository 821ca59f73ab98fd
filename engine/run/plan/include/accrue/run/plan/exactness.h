// SPDX-License-Identifier: Apache-2.0
// Exactness: whether the gradient of a window equals the gradient of the same samples in one batch over all ranks. The
// lamp beside a run, the verdicts of "accrue-run verify" and the events of a run share these words and tolerances; the
// ranks measure the figures.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// exact: within the rounding of the number type. close: not exact, for a reason that is not a mistake. different: a
/// mistake, or a choice with a cost that the user should know.
enum class Exactness { exact, close, different };
/// Returns "exact", "close" or "not".
std::string_view to_string(Exactness exactness);

/// Reason of a difference, or of a cost that changes no number.
enum class ExactnessReason {
  none,
  order_of_sums,       ///< rounding, slightly above the tolerance
  batch_norm,          ///< statistics of each micro-batch
  dropout,             ///< one batch drops other units
  divisor,             ///< nothing divides the sum, or the wrong number does
  tail_policy,         ///< a short window is divided by N
  mean_of_means,       ///< every micro-step has the same weight, whatever its size
  weighed_by_samples,  ///< micro-steps weigh by their samples, not by the items of their losses
  own_size,            ///< the loss is scaled by the micro-batch's own size
  cleared,             ///< gradients were cleared inside the window
  left_out,            ///< a micro-step is missing from the sum
  clipped,             ///< unfinished sums were clipped
  repeated_samples,    ///< samples count twice to fill up a batch
  ranks_differ,        ///< the ranks hold different gradients
  part_not_reduced,    ///< the same, for some parameters
  wasted_reductions,   ///< more communication than the window needs
  schedule_clock,      ///< the schedule counts micro-steps instead of updates
  coupled_samples,     ///< a sample's loss depends on the others of its micro-batch
  own_buffers,         ///< the loss reads buffers that every forward changes
  unrepeatable,        ///< random numbers that no seed fixes, or that are also used in evaluation
  bug_idle,            ///< the run has a deliberate bug that has no effect on this window
  unexplained
};
std::string_view to_string(ExactnessReason reason);
/// Returns one sentence for people.
std::string_view explain(ExactnessReason reason);

/// Difference of two gradients.
struct ExactnessFigures {
  double max_abs = 0.0;   ///< maximum difference of an element
  double relative = 0.0;  ///< L2 norm of the difference / L2 norm of the one-batch gradient
  double cosine = 1.0;
  double ratio = 1.0;  ///< length along the one-batch gradient: 2 means twice as long
};

/// Maximum relative difference that still counts as rounding.
double exactness_tolerance(Dtype dtype);
/// Returns exact within the tolerance; else different, unless a reason says otherwise.
Exactness judge(const ExactnessFigures& figures, double tolerance, ExactnessReason reason);

}  // namespace accrue
