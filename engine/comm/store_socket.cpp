// SPDX-License-Identifier: Apache-2.0
#include "store_socket.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace accrue {
namespace {

constexpr int kBacklog = 1024;

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

/// The listening socket, or none with errno.
OwnedFd listen_on(const addrinfo& address) {
  OwnedFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0)
    fd.reset();
  return fd;
}

}  // namespace

Result<OwnedFd> listen_for_store(const std::string& host, int port) {
  const std::string where = host + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = AF_UNSPEC;
  AddressList addresses;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses.first);
  if (failure != 0) {
    return fail(ErrorCode::rendezvous, "MASTER_ADDR=" + host + " does not resolve: " + ::gai_strerror(failure),
                "rank 0", "Give the address or name of rank 0's host");
  }
  int last = 0;
  for (const addrinfo* each = addresses.first; each != nullptr; each = each->ai_next) {
    if (OwnedFd fd = listen_on(*each); fd) return fd;
    last = errno;
    if (last == EADDRINUSE) break;
  }
  if (last == EADDRNOTAVAIL) return OwnedFd();
  if (last == EADDRINUSE) {
    return fail(ErrorCode::rendezvous, "the meeting point " + where + " is taken by another program", "rank 0",
                "Choose another MASTER_PORT, or end that program (ss -ltnp shows it)");
  }
  return fail(ErrorCode::rendezvous, "rank 0 cannot listen on " + where + ": " + std::strerror(last), "rank 0",
              "Choose another MASTER_ADDR or MASTER_PORT");
}

}  // namespace accrue
