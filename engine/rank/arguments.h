// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

/// Command line of accrue-rank. The supervisor passes rank and events_fd; a foreign launcher passes neither.
struct RankArguments {
  bool help = false;
  bool version = false;
  bool probe = false;
  std::filesystem::path plan;        ///< plan.json
  std::filesystem::path spec;        ///< SPEC.accrue, if there is no plan
  std::filesystem::path out;         ///< run folder of a run without a supervisor; empty: none
  std::vector<std::string> plugins;  ///< of a run without a supervisor
  int rank = -1;
  int events_fd = -1;
  int store_fd = -1;
  bool supervised() const { return events_fd >= 0; }
};

/// Errors (config): an unknown option, a value that is missing or not a number, options that exclude each other.
Result<RankArguments> parse_arguments(const std::vector<std::string>& words);
const char* usage();

}  // namespace accrue
