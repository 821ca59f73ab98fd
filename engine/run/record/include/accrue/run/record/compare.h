// SPDX-License-Identifier: Apache-2.0
// Comparison of two or more runs: differing keys, the differences of their losses on a common clock, and the point at
// which they part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/record/curve_comparison.h"
#include "accrue/run/record/run_store.h"

namespace accrue {

/// Course of a run from its events. If a resumed run trained an update again, the later value counts.
struct RunCourse {
  std::map<std::int64_t, Update> updates;          ///< by number; without recorded weights
  std::map<std::int64_t, Evaluation> evaluations;  ///< by the update that they follow
  std::vector<LengthChange> steps_set;             ///< N set during the run
  ReadProblems problems;
};
/// Errors: as read_events.
Result<RunCourse> read_course(const std::filesystem::path& run_dir);

/// The updates of a run, in order. Errors: as read_events.
Result<std::vector<LossPoint>> loss_curve(const std::filesystem::path& run_dir);

/// Name of the difference for an N that was set by hand during a run, which no spec contains.
inline constexpr const char* steps_set_key = "N set while it ran";

struct RunComparison {
  std::vector<RunSummary> runs;
  std::vector<std::vector<SpecDifference>> differences;  ///< of each run from the first; the first list is empty
  std::vector<std::string>
      other_loss;  ///< for each run, the key that gives its loss another meaning than the first run's
  ComparisonClock clock = ComparisonClock::samples;
  std::vector<std::size_t> without_samples;  ///< runs without sample counts, because of which the clock is updates
  std::vector<CurveDistance> distances;      ///< of each run from the first; the first entry is empty
  std::vector<ComparedPoint> points;
};

/// Errors: a folder is not a run, fewer than two folders.
Result<RunComparison> compare_runs(const std::vector<std::filesystem::path>& dirs);
std::string to_json(const RunComparison& comparison);

}  // namespace accrue
