// SPDX-License-Identifier: Apache-2.0
// Rows of named values from tables and JSON lines, as the scalars of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Place at which a value is logged.
struct LogPlace {
  std::int64_t step = 0;
  std::optional<double> seconds = {};  ///< since 1970 or since the run began
  std::optional<std::int64_t> samples = {};
};

/// Names of the values that give a row's place.
struct PlaceColumns {
  std::size_t step = 0;
  std::optional<std::size_t> time;
  std::optional<std::size_t> samples;
  bool epochs = false;  ///< the step is an epoch
};
/// Finds them by their usual names, ignoring case: update, step, iteration, trainer/global_step, _step, epoch; seconds,
/// _timestamp; samples. Errors (config): no step with the requested or a usual name.
Result<PlaceColumns> place_columns(const std::vector<std::string>& names, const LogRequest& request,
                                   const std::string& word);

/// Returns an integer from 0 to 9e15; none for any other number.
std::optional<std::int64_t> step_of(double number);

/// Returns for example "loss, lr and 12 more".
std::string name_list(const std::vector<std::string>& names);

/// Collection of the scalars of one run; for a duplicate step the later value holds.
class ScalarRows {
 public:
  void add(const std::string& name, const LogPlace& at, double value);
  /// The run was restarted at this step: earlier values from there on are dropped.
  void restart_at(std::int64_t step);
  /// Makes the log. Times that begin near 0 are relative to `written`, the file's time in seconds since 1970.
  RunLog log(double written, std::string word) const;
  bool timed() const { return timed_; }
  bool empty() const { return points_.empty(); }

 private:
  struct Point {
    LogPlace at;
    double value = 0.0;
  };
  std::map<std::string, std::vector<Point>> points_;
  bool timed_ = false;
};

}  // namespace accrue
