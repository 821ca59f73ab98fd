// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

#include <chrono>
#include <utility>

namespace accrue {

/// Owner of a descriptor until its release. -1: none.
class TcpSocket {
 public:
  explicit TcpSocket(int fd = -1) : fd_(fd) {}
  TcpSocket(TcpSocket&& other) noexcept : fd_(other.release()) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TcpSocket();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Milliseconds until then, rounded up; 0 once it is past.
int left_ms(std::chrono::steady_clock::time_point deadline);

/// Connects, without blocking, to the first address of the list that answers. Each gets an equal share of the remaining
/// time, so a silent one does not prevent attempts at the others. Errors: returns none, with errno of the last address.
TcpSocket connect_to_any(const addrinfo* addresses, std::chrono::steady_clock::time_point deadline);

}  // namespace accrue
