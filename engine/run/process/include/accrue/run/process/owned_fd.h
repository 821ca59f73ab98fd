// SPDX-License-Identifier: Apache-2.0
// File descriptors with an owner: single ones, and both ends of a connection to a child.
#pragma once

#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

/// Owner of a file descriptor.
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

/// Both ends of a connection. Neither is inherited unless it is passed on explicitly.
struct FdPair {
  OwnedFd ours;
  OwnedFd theirs;
};
/// Makes a pipe from a child to this process. `what` begins the error: "no pipe for a rank's output can be made".
/// Errors: device if too many files are open; internal.
Result<FdPair> pipe_from_child(std::string_view what);
/// Makes a pipe from this process to a child. Errors: as pipe_from_child().
Result<FdPair> pipe_to_child(std::string_view what);
/// Makes a stream in both directions. Errors: as pipe_from_child().
Result<FdPair> socket_to_child(std::string_view what);

}  // namespace accrue
