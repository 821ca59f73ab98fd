// SPDX-License-Identifier: Apache-2.0
// RunLock: one process at a time writes the record of a run folder.
#pragma once

#include <filesystem>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

/// flock on run.lock. A child that inherits the descriptor keeps the lock until it ends.
class RunLock {
 public:
  RunLock() = default;
  /// Errors: held by another process (config); cannot be opened or is not a regular file (disk).
  static Result<RunLock> take(const std::filesystem::path& dir);
  int fd() const { return fd_.get(); }

 private:
  OwnedFd fd_;
};

}  // namespace accrue
