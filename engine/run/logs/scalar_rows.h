// SPDX-License-Identifier: Apache-2.0
// Rows of named values, as tables and JSON lines hold them, as the scalars of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// What a value is logged at.
struct LogPlace {
  std::int64_t step = 0;
  std::optional<double> seconds = {};  ///< since 1970 or since the run began
  std::optional<std::int64_t> samples = {};
};

/// Which of a row's values say where it stands.
struct PlaceColumns {
  std::size_t step = 0;
  std::optional<std::size_t> time;
  std::optional<std::size_t> samples;
  bool epochs = false;  ///< the step is an epoch
};
/// By their usual names, without regard to case: update, step, iteration, trainer/global_step, _step, epoch; seconds,
/// _timestamp; samples. Errors (config): no step of the name asked for, or of a usual one.
Result<PlaceColumns> place_columns(const std::vector<std::string>& names, const LogRequest& request,
                                   const std::string& word);

/// A whole number from 0 to 9e15.
std::optional<std::int64_t> step_of(double number);

/// "loss, lr and 12 more"
std::string name_list(const std::vector<std::string>& names);

/// Collects the scalars of one run; a step that is told twice holds what was said later.
class ScalarRows {
 public:
  void add(const std::string& name, const LogPlace& at, double value);
  /// A run that was started again goes on from this step: what an earlier attempt said from there on is dropped.
  void restart_at(std::int64_t step);
  /// Seconds that begin near 0 count from `written`, seconds since 1970 when the file was written.
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
