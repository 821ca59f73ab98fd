// SPDX-License-Identifier: Apache-2.0
// Rank processes: starting and finding them. Thread: engine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "accrue/run/process/child_process.h"

namespace accrue {

/// A rank that this process started: its process, and our ends of its channel and its output. A signal also reaches
/// what the rank started; Ctrl+C in a terminal reaches only the supervisor. For a rank of another launcher there is
/// only the channel.
struct RankProcess {
  ChildProcess child;
  OwnedFd events;
  OwnedFd output;
};

/// Makes anonymous memory in which the ranks meet. They inherit it, and no other process can open it.
Result<OwnedFd> make_store_memory();

struct RankLaunch {
  std::string program;
  std::filesystem::path plan_file;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t threads = 1;
  int lock_fd = -1;
  int store_fd = -1;                          ///< the same memory for all ranks
  std::chrono::milliseconds patience{60000};  ///< time limit for a rank that was stopped before it runs
};

/// Errors (device): the program is missing or cannot be started.
Result<RankProcess> spawn_rank(const RankLaunch& launch);

/// Returns the environment of a rank: allowed variables of this process, then those that a rank needs.
std::vector<std::string> rank_environment(const RankLaunch& launch);

/// Returns the live rank processes of a run folder, found by their command line, whichever process started them.
std::vector<pid_t> ranks_of_run(const std::filesystem::path& run_dir);

}  // namespace accrue
