// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, read: the scalars of a log folder by tag. Files come from other programs and may be
// damaged, cut short or hostile: every length has a limit, and both checksums of a record are compared.
#pragma once

#include <cstdint>
#include <filesystem>
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

struct TensorboardLog {
  std::map<std::string, std::vector<LoggedScalar>> scalars;  ///< by tag, by step; of a step told twice the later
  std::vector<std::string> problems;                         ///< what could not be read, a sentence each
  std::string word = "tag";                                  ///< what its files call the name of a scalar
  std::string name;                                          ///< of the run; empty: that of the file
};

/// Reads the records of one file, and of what it holds the scalars: simple values, and tensors of one float or double.
/// A damaged record ends the file with a sentence in the problems, as does one that is cut short. go_on is asked now
/// and then; false ends it.
void read_tensorboard_records(std::string_view bytes, const std::string& name, TensorboardLog& log,
                              const std::function<bool()>& go_on = {});

/// A file, or every file of a folder whose name has "tfevents" in it. Errors: none there, no scalar in them (config),
/// unreadable (disk), go_on said false (cancelled).
Result<TensorboardLog> read_tensorboard(const std::filesystem::path& path, const std::function<bool()>& go_on = {});

}  // namespace accrue
