// SPDX-License-Identifier: Apache-2.0
// Exactness: does the gradient that a window brought to its update equal the gradient of the same samples taken in one
// batch over all ranks? The lamp beside a run, the verdicts of "accrue-run verify" and the events of a run read the
// same words and tolerances here; the ranks measure the figures.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/run_spec.h"

namespace accrue {

/// exact: within the rounding of the number type. close: not, and for a reason that is no mistake. different: a
/// mistake, or a choice whose price should be known.
enum class Exactness { exact, close, different };
/// "exact", "close", "not".
std::string_view to_string(Exactness exactness);

/// What accounts for a difference, or for a cost that changes no number.
enum class ExactnessReason {
  none,
  order_of_sums,       ///< rounding, a little more of it than the tolerance allows
  batch_norm,          ///< statistics of each micro-batch
  dropout,             ///< other units are dropped in one batch
  divisor,             ///< nothing, or the wrong number, divides the sum
  tail_policy,         ///< a short window is divided by N
  mean_of_means,       ///< every micro-step has the same weight, whatever its size
  weighed_by_samples,  ///< micro-steps weigh by their samples, not by the items of their losses
  own_size,            ///< the loss is scaled by the micro-batch's own size
  cleared,             ///< gradients were cleared inside the window
  left_out,            ///< a micro-step is missing from the sum
  clipped,             ///< unfinished sums were clipped
  repeated_samples,    ///< samples count twice to fill up a batch
  ranks_differ,        ///< the ranks hold different gradients
  part_not_reduced,    ///< they do so for some of the parameters
  wasted_reductions,   ///< more exchanges than the window needs
  schedule_clock,      ///< the schedule counts micro-steps in place of updates
  coupled_samples,     ///< a sample's loss depends on the others of its micro-batch
  own_buffers,         ///< the loss reads buffers that every forward changes
  unrepeatable,        ///< random numbers that no seed fixes, or in evaluation too
  bug_idle,            ///< the run has a deliberate bug, which this window does not show
  unexplained
};
std::string_view to_string(ExactnessReason reason);
/// One sentence for people.
std::string_view explain(ExactnessReason reason);

/// How far two gradients are from each other.
struct ExactnessFigures {
  double max_abs = 0.0;   ///< largest difference of an element
  double relative = 0.0;  ///< L2 norm of the difference / L2 norm of the one-shot gradient
  double cosine = 1.0;
  double ratio = 1.0;  ///< length along the one-shot gradient: 2 means twice as long
};

/// Largest relative difference that still counts as rounding.
double exactness_tolerance(Dtype dtype);
/// exact within the tolerance; else different until a reason says otherwise.
Exactness judge(const ExactnessFigures& figures, double tolerance, ExactnessReason reason);

}  // namespace accrue
