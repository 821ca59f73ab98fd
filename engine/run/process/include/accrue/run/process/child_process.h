// SPDX-License-Identifier: Apache-2.0
// Starts a process and owns it until it has ended. Uses posix_spawn instead of fork, because the caller may have
// threads.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

struct ExitReport {
  int signal = 0;  ///< 0: it exited
  int status = 0;
  bool lost = false;  ///< for a rank of another launcher: its channel ended before it reported its end
};

struct ProcessStart;

/// A started process. Has a pidfd, which unlike a process id is never reused.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  /// Kills and reaps the process if it still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  /// Readable once the process has ended. -1 if the kernel has no pidfd; then reap() must be polled.
  int pidfd() const { return pidfd_.get(); }
  /// Sends a signal, to the process's whole group if it has its own.
  void signal(int number) const;
  /// Returns how the process ended, if it has. Then kills what is left of its own group.
  std::optional<ExitReport> reap() { return take_exit(false); }
  /// Waits for its end. If the end cannot be determined, the status is 1.
  ExitReport wait() { return take_exit(true).value_or(ExitReport{.status = 1}); }
  /// Gives up the process, which may outlive this one.
  void let_go();

 private:
  friend Result<ChildProcess> start_process(ProcessStart how);
  std::optional<ExitReport> take_exit(bool wait);

  pid_t pid_ = -1;
  bool own_group_ = false;
  OwnedFd pidfd_;
};

/// Options for starting a process. Unless it inherits, it gets the descriptors named here, this process's standard
/// streams for those not named, and no others; signals are default and unblocked.
struct ProcessStart {
  struct File {
    int number = 0;    ///< in the child
    int ours = -1;     ///< source: a descriptor of this process, or
    std::string path;  ///< a file that is opened
    int flags = 0;     ///< of open(2)
  };
  enum class Group { ours, own, session };  ///< session: its own group in its own session

  std::string what;                                   ///< name of the process in errors: "rank 3"
  std::vector<std::string> command;                   ///< a path and the arguments
  std::string program;                                ///< the path, if command.front() is another name
  std::optional<std::vector<std::string>> variables;  ///< NAME=VALUE; none: this process's environment
  std::vector<File> files;
  Group group = Group::own;
  bool inherits = false;             ///< keeps descriptors without O_CLOEXEC, and the state of signals
  std::vector<int> blocked_signals;  ///< unless it inherits
  /// Time limit for a child that is stopped (SIGSTOP) before it has become the program, which blocks this process. It
  /// is then killed and reported as dead. 0: no limit.
  std::chrono::milliseconds patience{0};

  /// Gives the child this process's descriptor `ours` as `number`.
  void give(const OwnedFd& ours, int number) { files.push_back({number, ours.get(), {}, 0}); }
  /// Opens /dev/null for these numbers.
  void mute(std::initializer_list<int> numbers) {
    for (const int number : numbers) files.push_back({number, -1, "/dev/null", O_RDWR});
  }
};

/// Returns once the child has become the program. Errors (device): "rank 3 cannot be started: ..." with the program.
Result<ChildProcess> start_process(ProcessStart how);

}  // namespace accrue
