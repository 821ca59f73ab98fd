// SPDX-License-Identifier: Apache-2.0
// Descriptors that have an owner, alone and as the two ends of a connection to a child.
#pragma once

#include <string_view>

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

/// Neither end is inherited unless it is given.
struct FdPair {
  OwnedFd ours;
  OwnedFd theirs;
};
/// A pipe from a child to us. `what` begins the error: "no pipe for a rank's output can be made". Errors: device, where
/// too many files are open; internal.
Result<FdPair> pipe_from_child(std::string_view what);
/// A pipe from us to a child. Errors: as pipe_from_child().
Result<FdPair> pipe_to_child(std::string_view what);
/// A stream in both directions. Errors: as pipe_from_child().
Result<FdPair> socket_to_child(std::string_view what);

}  // namespace accrue
