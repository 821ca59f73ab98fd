// SPDX-License-Identifier: Apache-2.0
// Guard of ranks that only this process can end: a user's program watches no channel, and a parent-death signal would
// depend on one thread. A small process holds the read end of a pipe whose write end only this process has. However
// this process ends, the guard then reads end-of-file and kills the ranks that it was given.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "accrue/run/process/child_process.h"
#include "accrue/run/process/guard_programs.h"

namespace accrue {

class ProgramGuard {
 public:
  ProgramGuard() = default;
  /// Errors: internal or device if the guard cannot be started.
  static Result<ProgramGuard> start(std::vector<std::string> command);
  void watch(pid_t pid) { tell('+', pid); }
  void forget(pid_t pid) { tell('-', pid); }

 private:
  void tell(char sign, pid_t pid);

  ChildProcess process_;
  OwnedFd pipe_;
};

}  // namespace accrue
