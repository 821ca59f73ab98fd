// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

namespace fake_rank {
namespace {

/// Address on which rank 0 listens.
struct Meeting {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&address); }
};

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

World::World(std::int64_t rank, std::int64_t size, int store_fd) : rank_(rank), size_(size), store_fd_(store_fd) {}

World::~World() {
  for (const int fd : peers_) ::close(fd);
  if (store_fd_ >= 0) ::close(store_fd_);
}

bool World::join() {
  if (size_ == 1) return true;
  return rank_ == 0 ? accept_peers() : connect_to_first();
}

bool World::accept_peers() {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Meeting meeting;
  meeting.address.sun_family = AF_UNIX;
  // An address of the family alone asks the kernel for an abstract name.
  if (::bind(listener, meeting.generic(), sizeof(sa_family_t)) != 0 || ::listen(listener, 64) != 0 ||
      ::getsockname(listener, meeting.generic(), &meeting.length) != 0 ||
      ::pwrite(store_fd_, &meeting, sizeof meeting, 0) != sizeof meeting)
    return false;
  while (static_cast<std::int64_t>(peers_.size()) + 1 < size_) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno != EINTR) return false;
    if (fd >= 0) peers_.push_back(fd);
  }
  ::close(listener);
  std::uint32_t none = 0;
  return unite(none) == Round::done;
}

bool World::connect_to_first() {
  Meeting meeting;
  for (int looks = 0; ::pread(store_fd_, &meeting, sizeof meeting, 0) != sizeof meeting; ++looks) {
    if (looks == 30000) return false;
    ::poll(nullptr, 0, 2);
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, meeting.generic(), meeting.length) != 0) return false;
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
