// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/process/owned_fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "accrue/run/base/system_error.h"

namespace accrue {

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int OwnedFd::release() {
  return std::exchange(fd_, -1);
}

void OwnedFd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<FdPair> pipe_from_child(std::string_view what) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(what, errno);
  return FdPair{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

Result<FdPair> pipe_to_child(std::string_view what) {
  auto pair = pipe_from_child(what);
  if (pair) std::swap(pair->ours, pair->theirs);
  return pair;
}

Result<FdPair> socket_to_child(std::string_view what) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_error(what, errno);
  return FdPair{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

}  // namespace accrue
