// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace fake_rank {
namespace {

bool send_word(int fd, std::uint32_t word) {
  return ::send(fd, &word, sizeof word, MSG_NOSIGNAL) == sizeof word;
}

bool receive_word(int fd, std::uint32_t& word) {
  ssize_t count = 0;
  do {
    count = ::recv(fd, &word, sizeof word, MSG_WAITALL);
  } while (count < 0 && errno == EINTR);
  return count == sizeof word;
}

}  // namespace

World::World(std::int64_t rank, std::int64_t size, int store_fd, std::uint16_t port)
    : rank_(rank), size_(size), store_fd_(store_fd), port_(port) {}

World::~World() {
  for (const int fd : peers_) ::close(fd);
  if (store_fd_ >= 0) ::close(store_fd_);
}

bool World::join() {
  if (size_ == 1) return true;
  return rank_ == 0 ? accept_peers() : connect_to_first();
}

bool World::accept_peers() {
  while (static_cast<std::int64_t>(peers_.size()) + 1 < size_) {
    const int fd = ::accept4(store_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno != EINTR) return false;
    if (fd >= 0) peers_.push_back(fd);
  }
  std::uint32_t none = 0;
  return unite(none) == Round::done;
}

bool World::connect_to_first() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  peers_.push_back(fd);
  std::uint32_t none = 0;
  return unite(none) == Round::done;
}

Round World::unite(std::uint32_t& flags) {
  if (rank_ != 0) {
    if (!send_word(peers_.front(), flags) || !receive_word(peers_.front(), flags)) return Round::peer_lost;
    return Round::done;
  }
  for (const int fd : peers_) {
    std::uint32_t theirs = 0;
    if (!receive_word(fd, theirs)) return Round::peer_lost;
    flags |= theirs;
  }
  for (const int fd : peers_)
    if (!send_word(fd, flags)) return Round::peer_lost;
  return Round::done;
}

}  // namespace fake_rank
