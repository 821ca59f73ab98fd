// SPDX-License-Identifier: Apache-2.0
// Two or more runs side by side: which keys differ, how far their losses are apart where they have seen the same
// samples, and where they first part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/curve_parting.h"
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

struct LossPoint {
  std::int64_t update = 0;
  std::int64_t samples = 0;
  double loss = 0.0;
  bool operator==(const LossPoint&) const = default;
};

/// The updates of a run, in order. Errors: as read_events.
Result<std::vector<LossPoint>> loss_curve(const std::filesystem::path& run_dir);

/// The losses of the runs that reported one after this number of samples: two at least.
struct ComparedPoint {
  std::int64_t samples = 0;
  std::vector<std::optional<double>> losses;  ///< in the order of the runs
};

/// How far a run is from the first, where both reported a loss.
struct RunDistance {
  std::int64_t shared_points = 0;
  std::optional<ComparedPoint> first_divergence;  ///< where the two losses first differ in any bit
  std::optional<ComparedPoint> parting;           ///< where the difference is more than noise: curve_parting
  double noise = 0.0;                             ///< of the difference, as curve_parting measures it there
  bool too_few_points = false;                    ///< to judge whether they part: too_few_to_judge
  double largest_relative_difference = 0.0;       ///< non-finite losses left out
};

/// Among the differences: N that was set by hand while a run ran, which no spec holds.
inline constexpr const char* steps_set_key = "N set while it ran";

struct RunComparison {
  std::vector<RunSummary> runs;
  std::vector<std::vector<SpecDifference>> differences;  ///< of each run to the first; the first's list is empty
  std::vector<RunDistance> distances;                    ///< likewise
  std::vector<ComparedPoint> points;                     ///< in the order of samples
};

/// Errors: a folder is not a run, fewer than two folders.
Result<RunComparison> compare_runs(const std::vector<std::filesystem::path>& dirs);
std::string to_json(const RunComparison& comparison);

}  // namespace accrue
