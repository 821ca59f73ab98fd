// SPDX-License-Identifier: Apache-2.0
// How the evaluations between a run's windows go: the best so far (checkpoint.best), and how long none has improved on
// it (run.stop_when). All ranks take the same losses, and a checkpoint holds the numbers, so that a resumed run ends
// where the uninterrupted one does.
#pragma once

#include <cstdint>
#include <string>

#include "accrue/run/fields/spec.h"

namespace accrue {

struct EvaluationProgress {
  std::int64_t best_update = 0;  ///< of the lowest loss so far; 0: none
  double best_loss = 0.0;
  std::int64_t unimproved = 0;   ///< evaluations in a row that did not improve on the best before them
  std::int64_t kept_update = 0;  ///< of the checkpoint that is kept for its loss (checkpoint.best); 0: none
  bool due = false;              ///< a stop left the evaluation of this update to the run that is resumed here

  /// Takes the next evaluation's loss. Returns whether it is the lowest so far; one that is not finite never is.
  bool take(std::int64_t update, double loss, double least_improvement);
  bool operator==(const EvaluationProgress&) const = default;
};

/// Whether a run of this spec counts its evaluations.
bool counts_evaluations(const RunSpec& spec);
/// Whether the run ends here (run.stop_when).
bool ends_early(const RunSection& run, const EvaluationProgress& progress);
/// Returns when a run ends early, in words: "the validation loss has not improved for 3 evaluations".
std::string early_end_condition(const RunSection& run);
/// Returns why it did: "Finished after update 120 of 300: the validation loss has not improved for 3 evaluations; the
/// best was 2.31 at update 90".
std::string early_end_reason(const RunSection& run, const EvaluationProgress& progress, std::int64_t update,
                             std::int64_t planned_updates);

}  // namespace accrue
