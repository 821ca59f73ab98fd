// SPDX-License-Identifier: Apache-2.0
// Two or more runs side by side: which keys differ, how far their losses are apart where they stand at the same place
// of a clock that all have, and where they first part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/curve_comparison.h"
#include "accrue/run/event_reader.h"
#include "accrue/run/result.h"
#include "accrue/run/run_store.h"
#include "accrue/run/spec_fields.h"

namespace accrue {

/// What a run's events say of its course. Where a resumed run trained an update again, its later value counts.
struct RunCourse {
  std::map<std::int64_t, Update> updates;          ///< by number, without recorded weights
  std::map<std::int64_t, Evaluation> evaluations;  ///< by the update that they follow
  std::vector<LengthChange> steps_set;             ///< N set while the run ran
  ReadProblems problems;
};
/// Errors: as read_events.
Result<RunCourse> read_course(const std::filesystem::path& run_dir);

/// The updates of a run, in order. Errors: as read_events.
Result<std::vector<LossPoint>> loss_curve(const std::filesystem::path& run_dir);

/// Among the differences: N that was set by hand while a run ran, which no spec holds.
inline constexpr const char* steps_set_key = "N set while it ran";

struct RunComparison {
  std::vector<RunSummary> runs;
  std::vector<std::vector<SpecDifference>> differences;  ///< of each run to the first; the first's list is empty
  std::vector<std::string>
      other_loss;  ///< of each run the key because of which its loss means another thing than the first's
  ComparisonClock clock = ComparisonClock::samples;
  std::vector<std::size_t> without_samples;  ///< of the runs those that do not count them, so that the clock is updates
  std::vector<CurveDistance> distances;      ///< of each run from the first; the first's is empty
  std::vector<ComparedPoint> points;
};

/// Errors: a folder is not a run, fewer than two folders.
Result<RunComparison> compare_runs(const std::vector<std::filesystem::path>& dirs);
std::string to_json(const RunComparison& comparison);

}  // namespace accrue
