// SPDX-License-Identifier: Apache-2.0
// A run that outlives its terminal: this program starts itself again in a new session, and both communicate over a pipe
// until training has begun.
#pragma once

#include <string>
#include <vector>

#include "accrue/run/base/owned_fd.h"

namespace accrue::cli {

/// Starts this program with the arguments and the hidden option --supervise-fd; waits until the ranks have joined or
/// the run has ended. Prints the run folder on standard output. Returns the exit status.
int start_detached(std::vector<std::string> arguments);

/// The detached end of the pipe.
class DetachedReport {
 public:
  explicit DetachedReport(int fd) : fd_(fd) {}
  bool active() const { return static_cast<bool>(fd_); }
  void folder(const std::string& dir);
  /// Training has begun: the starter may exit, and the terminal may close.
  void training();

 private:
  void write_line(const std::string& line);
  OwnedFd fd_;
};

}  // namespace accrue::cli
