// SPDX-License-Identifier: Apache-2.0
// Rank processes: how one is started, and found. Thread: engine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/child_process.h"
#include "accrue/run/owned_fd.h"
#include "accrue/run/result.h"

namespace accrue {

/// A rank that we have started: its process, and our ends of its channel and its output. A signal reaches what the rank
/// started, too, and Ctrl+C in a terminal reaches the supervisor alone. Of a rank that another launcher started there
/// is only the channel.
struct RankProcess {
  ChildProcess child;
  OwnedFd events;
  OwnedFd output;
};

/// Memory without a name, in which the ranks meet: they inherit it, and nobody else can open it.
Result<OwnedFd> make_store_memory();

struct RankLaunch {
  std::string program;
  std::filesystem::path plan_file;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t threads = 1;
  int lock_fd = -1;
  int store_fd = -1;                          ///< the same memory for all ranks
  std::chrono::milliseconds patience{60000};  ///< with a rank that somebody stops before it runs
};

/// Errors (device): the program is missing or cannot be started.
Result<RankProcess> spawn_rank(const RankLaunch& launch);

/// The environment of a rank: what the allow-list lets through of ours, then what a rank needs.
std::vector<std::string> rank_environment(const RankLaunch& launch);

/// Live rank processes of a run folder, found by their command line, whichever process started them.
std::vector<pid_t> ranks_of_run(const std::filesystem::path& run_dir);

}  // namespace accrue
