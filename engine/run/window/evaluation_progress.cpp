// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/evaluation_progress.h"

#include <fmt/format.h>

#include <cmath>

#include "accrue/run/base/counted.h"
#include "accrue/run/fields/choice_names.h"

namespace accrue {

bool EvaluationProgress::take(std::int64_t update, double loss, double least_improvement) {
  const bool is_first = best_update == 0;
  const bool is_best = std::isfinite(loss) && (is_first || loss < best_loss);
  const bool improves = is_best && (is_first || best_loss - loss > least_improvement);
  unimproved = improves ? 0 : unimproved + 1;
  if (is_best) {
    best_update = update;
    best_loss = loss;
  }
  return is_best;
}

bool counts_evaluations(const RunSpec& spec) {
  return spec.run.stop_when != RunMeasure::none || spec.checkpoint.best != RunMeasure::none;
}

bool ends_early(const RunSection& run, const EvaluationProgress& progress) {
  return run.stop_when != RunMeasure::none && progress.unimproved >= run.patience;
}

std::string early_end_condition(const RunSection& run) {
  const std::string enough =
      run.least_improvement > 0.0 ? fmt::format(" by more than {:g}", run.least_improvement) : std::string();
  return fmt::format("the {} has not improved{} for {}", to_name(run.stop_when), enough,
                     counted(run.patience, "evaluation"));
}

std::string early_end_reason(const RunSection& run, const EvaluationProgress& progress, std::int64_t update,
                             std::int64_t planned_updates) {
  const std::string best = progress.best_update == 0 ? "none was finite"
                                                     : fmt::format("the best was {:.4g} at update {}",
                                                                   progress.best_loss, progress.best_update);
  return fmt::format("Finished after update {} of {}: {}; {}", update, planned_updates, early_end_condition(run), best);
}

}  // namespace accrue
