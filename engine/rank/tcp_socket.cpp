// SPDX-License-Identifier: Apache-2.0
#include "rank/tcp_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace accrue {
namespace {

using Clock = std::chrono::steady_clock;

bool connects(int fd, const addrinfo& address, Clock::time_point deadline) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waits{fd, POLLOUT, 0};
  int ready = 0;
  do ready = ::poll(&waits, 1, left_ms(deadline));
  while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  errno = error;
  return error == 0;
}

}  // namespace

int left_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(0, left));
}

OwnedFd connect_to_any(const addrinfo* addresses, Clock::time_point deadline) {
  int untried = 0;
  for (const addrinfo* each = addresses; each != nullptr; each = each->ai_next) ++untried;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = addresses; each != nullptr; each = each->ai_next, --untried) {
    const auto now = Clock::now();
    OwnedFd socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket && connects(socket.get(), *each, now + (deadline - now) / untried)) return socket;
    error = errno;
  }
  errno = error;
  return OwnedFd();
}

}  // namespace accrue
