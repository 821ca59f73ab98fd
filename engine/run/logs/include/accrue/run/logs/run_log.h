// SPDX-License-Identifier: Apache-2.0
// Curves of one run in another tool's log: scalars by name and step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct LoggedScalar {
  std::int64_t step = 0;
  double wall_time = 0.0;  ///< seconds since 1970
  double value = 0.0;
  bool operator==(const LoggedScalar&) const = default;
};

/// Options for reading a log.
struct LogRequest {
  std::string step = {};             ///< column or key of steps; empty: found by its usual names
  std::function<bool()> go_on = {};  ///< called now and then; false cancels the reading
  std::vector<std::string>* step_names =
      nullptr;  ///< receives the columns or keys of a log that is refused because it has no column of steps
};

/// Suffix of a scalar that is logged a second time, with samples as its step.
inline constexpr std::string_view samples_twin = " vs samples";

struct RunLog {
  std::string id;    ///< of the run within its file or folder; empty if that holds one run
  std::string name;  ///< of the run; empty: that of the file
  std::map<std::string, std::vector<LoggedScalar>>
      scalars;                              ///< by name, then step; for a duplicate step the later value
  std::map<std::string, Error> no_numbers;  ///< for a column that is not a scalar: its first such field
  std::vector<std::string> problems;        ///< unreadable or unknown parts, one phrase each
  std::string word = "tag";                 ///< the files' word for the name of a scalar
};

}  // namespace accrue
