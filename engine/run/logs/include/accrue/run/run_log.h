// SPDX-License-Identifier: Apache-2.0
// The curves that another tool logged of one run: scalars by name and step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

struct LoggedScalar {
  std::int64_t step = 0;
  double wall_time = 0.0;  ///< seconds since 1970
  double value = 0.0;
  bool operator==(const LoggedScalar&) const = default;
};

/// How a log is read.
struct LogRequest {
  std::string step = {};             ///< the column or key of steps; empty: by its usual names
  std::function<bool()> go_on = {};  ///< asked now and then; false ends the reading
  std::vector<std::string>* step_names =
      nullptr;  ///< gets the columns or keys of a log that is refused for want of one
};

/// What ends the name of a scalar that is logged a second time, with the samples trained on as its step.
inline constexpr std::string_view samples_twin = " vs samples";

struct RunLog {
  std::string id;    ///< of the run within its file or folder; empty where that holds one run
  std::string name;  ///< of the run; empty: that of the file
  std::map<std::string, std::vector<LoggedScalar>> scalars;  ///< by name, by step; of a step told twice the later
  std::map<std::string, Error> no_numbers;                   ///< of a column that is no scalar: the first such field
  std::vector<std::string> problems;                         ///< what could not be read or is not known, a phrase each
  std::string word = "tag";                                  ///< what its files call the name of a scalar
};

}  // namespace accrue
