// SPDX-License-Identifier: Apache-2.0
// Rank processes: how one is started, signalled and reaped. Thread: engine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

/// Owns a file descriptor.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

struct ExitReport {
  int signal = 0;  ///< 0 = it exited
  int status = 0;
  bool lost = false;  ///< of an adopted rank: its channel ended before it said how it ends
};

/// A started rank. Its process group is its own, so that Ctrl+C in a terminal reaches the supervisor alone and a
/// signal reaches what the rank started, too. It starts with SIGINT, SIGTERM and SIGHUP blocked: it ends by the
/// channel.
class RankProcess {
 public:
  RankProcess() = default;
  RankProcess(pid_t pid, OwnedFd pidfd, OwnedFd events, OwnedFd output);
  RankProcess(RankProcess&&) noexcept;
  RankProcess& operator=(RankProcess&&) noexcept;
  /// Kills and reaps what still runs.
  ~RankProcess();

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  /// Readable once the process has ended; -1 where the kernel has none, then reap() must be polled.
  int pidfd() const { return pidfd_.get(); }
  int events_fd() const { return events_.get(); }
  int output_fd() const { return output_.get(); }
  void close_events() { events_.reset(); }
  void close_output() { output_.reset(); }
  void signal_group(int signal) const;
  /// The end of the process if it has ended; what is left of its group is killed then.
  std::optional<ExitReport> reap();

 private:
  pid_t pid_ = -1;
  OwnedFd pidfd_;
  OwnedFd events_;
  OwnedFd output_;
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
