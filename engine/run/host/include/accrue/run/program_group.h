// SPDX-License-Identifier: Apache-2.0
// Starts one program several times, as the ranks of one world on this host, and supervises them as one: where a rank
// fails, the others are ended. The program learns who it is from its environment, in torchrun's names (RANK,
// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), which accrue::rank_identity() reads. It needs to
// know nothing of Accrue. Thread: every method on the thread that started the group.
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

#include "accrue/run/result.h"

namespace accrue {

enum class ProgramStream { output, errors };

/// How a rank ended.
struct ProgramEnd {
  std::int64_t rank = 0;
  int signal = 0;            ///< that ended it; 0 = it exited
  int status = 0;            ///< exit status
  bool told_to_end = false;  ///< we had signalled it before: its end explains itself
  bool failed() const { return !told_to_end && (signal != 0 || status != 0); }
};

struct ProgramGroupOptions {
  std::vector<std::string> command;  ///< the program (sought in PATH where it names no folder) and its arguments
  std::int64_t ranks = 1;
  std::int64_t threads = 0;  ///< OMP_NUM_THREADS of a rank; 0: the caller's, or else its share of the cores
  /// Beyond what the allow-list lets through: "NAME=VALUE", or "NAME" for the value it has here.
  std::vector<std::string> environment;
  std::filesystem::path log_dir;          ///< gets R.log for each rank; must exist; empty: none
  std::chrono::milliseconds grace{5000};  ///< between the rungs interrupt -> terminate -> kill
  /// A command that calls guard_programs() on its descriptor 3, so that the ranks end with us even where we are killed.
  /// Empty: then they may outlive us.
  std::vector<std::string> guard;
  /// A line of a rank, without its end.
  std::function<void(std::int64_t rank, ProgramStream stream, std::string_view line)> on_line;
  std::function<void(const ProgramEnd& end)> on_end;
};

class ProgramGroup {
 public:
  /// Starts all ranks, or none. Errors: config (no such program, no rank, a bad NAME), device (it cannot be started),
  /// disk (a log).
  static Result<std::unique_ptr<ProgramGroup>> start(ProgramGroupOptions options);
  /// Kills and reaps what still runs, with everything it started in its process group.
  virtual ~ProgramGroup() = default;

  /// Waits for what happens next, at most a fifth of a second, or until `wake_fd` is readable, and reports it. False
  /// once every rank has ended and all its lines are reported.
  virtual bool turn(int wake_fd) = 0;
  /// Ends the ranks: SIGINT, then after the grace SIGTERM, then SIGKILL. Later rungs are not taken back.
  virtual void interrupt() = 0;
  /// The same from SIGTERM on. Called by itself where a rank fails.
  virtual void terminate() = 0;
  virtual void kill() = 0;
  /// The rank whose failure ended the others.
  virtual const std::optional<ProgramEnd>& first_failure() const = 0;
};

}  // namespace accrue
