// SPDX-License-Identifier: Apache-2.0
// Starting a process, and owning it until it has ended. The caller may have threads, so posix_spawn instead of fork.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/owned_fd.h"
#include "accrue/run/result.h"

namespace accrue {

struct ExitReport {
  int signal = 0;  ///< 0 = it exited
  int status = 0;
  bool lost = false;  ///< of a rank that another launcher started: its channel ended before it said how it ends
};

struct ProcessStart;

/// A started process. Has a pidfd, which unlike a process id is never reused.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  /// Kills and reaps what still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }
  /// Readable once the process has ended; -1 where the kernel has none, then reap() must be polled.
  int pidfd() const { return pidfd_.get(); }
  /// To its whole group where that is its own.
  void signal(int number) const;
  /// How the process ended, if it has; what is left of its own group is killed then.
  std::optional<ExitReport> reap() { return take_exit(false); }
  /// Waits for its end. One that cannot be learned has status 1.
  ExitReport wait() { return take_exit(true).value_or(ExitReport{.status = 1}); }
  /// It may outlive us.
  void let_go();

 private:
  friend Result<ChildProcess> start_process(ProcessStart how);
  std::optional<ExitReport> take_exit(bool wait);

  pid_t pid_ = -1;
  bool own_group_ = false;
  OwnedFd pidfd_;
};

/// How a process starts. Unless it inherits, it has the descriptors that are named here, of the standard streams ours
/// for those that are not, and no others; and signals are as by default and unblocked.
struct ProcessStart {
  struct File {
    int number = 0;    ///< in the child
    int ours = -1;     ///< which of our descriptors it is, or
    std::string path;  ///< the file that is opened there
    int flags = 0;     ///< of open(2)
  };
  enum class Group { ours, own, session };  ///< session: a group of its own in one

  std::string what;                                   ///< names the process in errors: "rank 3"
  std::vector<std::string> command;                   ///< a path and the arguments
  std::string program;                                ///< the path, where command.front() is another name
  std::optional<std::vector<std::string>> variables;  ///< NAME=VALUE; none: our environment
  std::vector<File> files;
  Group group = Group::own;
  bool inherits = false;             ///< descriptors without O_CLOEXEC, and the state of signals
  std::vector<int> blocked_signals;  ///< unless it inherits
  /// With a child that is stopped (SIGSTOP) before it has become the program, which keeps us waiting: it is killed
  /// then, and found dead. 0: without end.
  std::chrono::milliseconds patience{0};

  /// `number` in the child is our descriptor `ours`.
  void give(const OwnedFd& ours, int number) { files.push_back({number, ours.get(), {}, 0}); }
  /// These numbers lead nowhere.
  void mute(std::initializer_list<int> numbers) {
    for (const int number : numbers) files.push_back({number, -1, "/dev/null", O_RDWR});
  }
};

/// Returns once the child has become the program. Errors (device): "rank 3 cannot be started: ..." with the program.
Result<ChildProcess> start_process(ProcessStart how);

}  // namespace accrue
