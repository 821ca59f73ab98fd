// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/owned_fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
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
  const int before = errno;
  if (fd_ >= 0) ::close(release());
  errno = before;
}

int OwnedFd::close() {
  return ::close(release()) == 0 ? 0 : errno;
}

OwnedFd nameless_file(const std::filesystem::path& folder) {
  OwnedFd made(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return made;
  // The file system has none. A kill between the two calls leaves an empty file.
  std::string name = folder / ".accrue-XXXXXX";
  made = OwnedFd(::mkostemp(name.data(), O_CLOEXEC));
  if (made) ::unlink(name.c_str());
  return made;
}

Result<FdPair> pipe_to_read(std::string_view what) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(what, errno);
  return FdPair{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

Result<FdPair> pipe_to_write(std::string_view what) {
  auto pair = pipe_to_read(what);
  if (pair) std::swap(pair->ours, pair->theirs);
  return pair;
}

Result<FdPair> socket_pair(std::string_view what) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_error(what, errno);
  return FdPair{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

}  // namespace accrue
