// SPDX-License-Identifier: Apache-2.0
// Ranks that only we can end: a user's program watches no channel, and a parent-death signal would hang
// on one thread. So a small process of our own holds the read end of a pipe whose other end only we have; when we are
// gone, however that came, it reads the end of the file and kills the ranks it was given.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "accrue/run/child_process.h"
#include "accrue/run/guard_programs.h"

namespace accrue {

class ProgramGuard {
 public:
  ProgramGuard() = default;
  /// Errors: internal or device, the guard cannot be started.
  static Result<ProgramGuard> start(std::vector<std::string> command);
  void watch(pid_t pid) { tell('+', pid); }
  void forget(pid_t pid) { tell('-', pid); }

 private:
  void tell(char sign, pid_t pid);

  ChildProcess process_;
  OwnedFd pipe_;
};

}  // namespace accrue
