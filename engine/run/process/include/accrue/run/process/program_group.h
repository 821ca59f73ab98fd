// SPDX-License-Identifier: Apache-2.0
// Starts one program several times, as the ranks of one world on this host, and supervises them as one: if a rank
// fails, the others are ended. The program reads its rank from torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), for example by accrue::rank_identity(). It needs no knowledge of Accrue.
// Thread: every method on the thread that started the group.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

enum class ProgramStream { output, errors };

/// End of a rank.
struct ProgramEnd {
  std::int64_t rank = 0;
  int signal = 0;            ///< that ended it; 0: it exited
  int status = 0;            ///< exit status
  bool told_to_end = false;  ///< the group had signalled it before, which explains its end
  bool failed() const { return !told_to_end && (signal != 0 || status != 0); }
};

struct ProgramGroupOptions {
  std::vector<std::string> command;  ///< the program (searched in PATH if it names no folder) and its arguments
  std::int64_t ranks = 1;
  std::int64_t threads = 0;  ///< OMP_NUM_THREADS of a rank; 0: the caller's value, or its share of the cores
  /// Variables in addition to the allow-list: "NAME=VALUE", or "NAME" for the value in this process.
  std::vector<std::string> environment;
  std::filesystem::path log_dir;          ///< existing folder for R.log of each rank; empty: none
  std::chrono::milliseconds grace{5000};  ///< between interrupt, terminate and kill
  /// A command that calls guard_programs() on its descriptor 3, so that the ranks end with this process even if it is
  /// killed. Empty: they may outlive it.
  std::vector<std::string> guard;
  /// Called with a line of a rank, without its line end.
  std::function<void(std::int64_t rank, ProgramStream stream, std::string_view line)> on_line;
  std::function<void(const ProgramEnd& end)> on_end;
};

class ProgramGroup {
 public:
  /// Starts all ranks, or none. Errors: config (no such program, no rank, a bad NAME), device (it cannot be started),
  /// disk (a log).
  static Result<std::unique_ptr<ProgramGroup>> start(ProgramGroupOptions options);
  /// Kills and reaps the running ranks, with everything that they started in their process groups.
  virtual ~ProgramGroup() = default;

  /// Waits for the next event, at most a fifth of a second or until `wake_fd` is readable, and reports it. Returns
  /// false once every rank has ended and all its lines are reported.
  virtual bool turn(int wake_fd) = 0;
  /// Ends the ranks: SIGINT, then after the grace period SIGTERM, then SIGKILL. A later stage is never undone.
  virtual void interrupt() = 0;
  /// Does the same from SIGTERM on. The group calls it itself if a rank fails.
  virtual void terminate() = 0;
  virtual void kill() = 0;
  /// The rank whose failure ended the others.
  virtual const std::optional<ProgramEnd>& first_failure() const = 0;
};

}  // namespace accrue
