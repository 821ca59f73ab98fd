// SPDX-License-Identifier: Apache-2.0
// File descriptors with an owner: single ones, and both ends of a connection.
#pragma once

#include <filesystem>
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
  /// Closes it, as the destructor does. errno stays as it was, so that the reason of a failure can still be told.
  void reset();
  /// Closes a file that was written. Returns 0, or the error: what was written may not be on the disk.
  int close();

 private:
  int fd_ = -1;
};

/// Opens a new file without a name on the folder's disk, to read and to write. Returns none on failure, with errno.
OwnedFd nameless_file(const std::filesystem::path& folder);

/// Both ends of a connection: ours, and those of another process or thread. Neither is inherited unless it is passed on
/// explicitly.
struct FdPair {
  OwnedFd ours;
  OwnedFd theirs;
};
/// Makes a pipe from which we read. `what` begins the error: "no pipe for a rank's output can be made". Errors: device
/// if too many files are open; internal.
Result<FdPair> pipe_to_read(std::string_view what);
/// Makes a pipe to which we write. Errors: as pipe_to_read().
Result<FdPair> pipe_to_write(std::string_view what);
/// Makes a stream in both directions. Errors: as pipe_to_read().
Result<FdPair> socket_pair(std::string_view what);

}  // namespace accrue
