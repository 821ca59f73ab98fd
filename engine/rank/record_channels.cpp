// SPDX-License-Identifier: Apache-2.0
#include "rank/record_channels.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "rank/plan_exchange.h"
#include "rank/tcp_socket.h"

namespace accrue {
namespace {

using Clock = std::chrono::steady_clock;

tl::unexpected<Error> system_failure(const std::string& what, int error) {
  return fail(ErrorCode::rendezvous, what + ": " + std::strerror(error), "the channel to rank 0");
}

std::string secret_word() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  constexpr char digits[] = "0123456789abcdef";
  std::string word;
  for (const unsigned char byte : bytes) (word += digits[byte >> 4]) += digits[byte & 15];
  return word;
}

struct Listener {
  OwnedFd socket;
  int port = 0;
};

Result<Listener> listen_here(bool one_host) {
  Listener made;
  made.socket = OwnedFd(::socket(one_host ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool six = !one_host && made.socket;
  if (!made.socket) made.socket = OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_in);
  if (six) {  // also accepts IPv4
    const int off = 0;
    ::setsockopt(made.socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    address.ss_family = AF_INET6;
    size = sizeof(sockaddr_in6);
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(address);
    four.sin_family = AF_INET;
    four.sin_addr.s_addr = htonl(one_host ? INADDR_LOOPBACK : INADDR_ANY);
  }
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!made.socket || ::bind(made.socket.get(), generic, size) != 0 || ::listen(made.socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(made.socket.get(), generic, &size) != 0)
    return system_failure("rank 0 cannot listen", errno);
  made.port = ntohs(six ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                        : reinterpret_cast<sockaddr_in&>(address).sin_port);
  return made;
}

void keep_talking(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/// `greeting`: text by which rank 0 identifies the connection.
Result<OwnedFd> reach(const std::string& host, int port, const std::string& greeting, Clock::time_point deadline) {
  const std::string where = host + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return fail(ErrorCode::rendezvous, "MASTER_ADDR=" + host + " does not resolve: " + ::gai_strerror(error), where);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  OwnedFd socket = connect_to_any(found, deadline);
  if (socket &&
      ::send(socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(greeting.size())) {
    keep_talking(socket.get());
    return socket;
  }
  return fail(ErrorCode::rendezvous,
              std::string("rank 0 keeps the record and cannot be reached: ") + std::strerror(errno), where,
              "MASTER_ADDR is to lead to rank 0's host, and no firewall may stand between");
}

/// A connection whose rank is not yet known.
struct Guest {
  OwnedFd socket;
  std::string said;
};

/// Accepts one connection from each rank except 0. Connections without the password are closed.
Result<std::vector<OwnedFd>> admit(const Listener& listener, const std::string& word, std::int64_t world,
                                   Clock::time_point deadline) {
  constexpr std::size_t longest_greeting = 64;
  const std::size_t most_guests = static_cast<std::size_t>(world) + 64;
  std::vector<OwnedFd> ranks(static_cast<std::size_t>(world));
  std::vector<Guest> guests;
  /// Returns true once the guest leaves the list: as a rank, or closed.
  const auto settled = [&](Guest& guest) {
    char byte = 0;  // one at a time: bytes after the greeting belong to the channel
    for (;;) {
      const auto count = ::recv(guest.socket.get(), &byte, 1, 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (count <= 0 || guest.said.size() == longest_greeting) return true;
      if (byte == '\n') break;
      guest.said += byte;
    }
    std::int64_t rank = 0;
    if (!guest.said.starts_with(word + " ")) return true;
    const char* begin = guest.said.data() + word.size() + 1;
    const auto [end, error] = std::from_chars(begin, guest.said.data() + guest.said.size(), rank);
    if (error != std::errc{} || rank < 1 || rank >= world || ranks[static_cast<std::size_t>(rank)]) return true;
    keep_talking(guest.socket.get());
    ranks[static_cast<std::size_t>(rank)] = std::move(guest.socket);
    return true;
  };
  for (std::int64_t missing = world - 1; missing > 0;) {
    std::vector<pollfd> fds{{listener.socket.get(), POLLIN, 0}};
    for (const Guest& guest : guests) fds.push_back({guest.socket.get(), POLLIN, 0});
    if (const int left = left_ms(deadline); left == 0 || ::poll(fds.data(), fds.size(), left) == 0) {
      std::int64_t first = 1;
      while (ranks[static_cast<std::size_t>(first)]) ++first;
      return fail(ErrorCode::rendezvous,
                  "rank " + std::to_string(first) + " did not reach rank 0, which keeps the record", "rank 0",
                  "MASTER_ADDR is to lead to rank 0's host, and no firewall may stand between");
    }
    if (fds[0].revents != 0) {
      if (guests.size() == most_guests) guests.erase(guests.begin());  // the one that was silent longest
      if (OwnedFd guest(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); guest)
        guests.push_back({std::move(guest), {}});
    }
    std::erase_if(guests, settled);
    missing = std::ranges::count_if(ranks, [](const OwnedFd& each) { return !each; }) - 1;
  }
  return ranks;
}

}  // namespace

Result<RecordChannels> open_record_channels(Rendezvous& meeting, Communicator& world,
                                            std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  RecordChannels channels;
  Listener listener;
  FdPair of_first;
  std::string word;
  Result<std::string> invitation;
  if (world.rank() == 0) {
    word = secret_word();
    Result<Listener> made = world.size() > 1 ? listen_here(meeting.one_host()) : Listener();
    if (made && word.empty()) made = system_failure("no word can be drawn that admits to it", errno);
    auto pair = socket_pair("the channel to rank 0 cannot be made");
    if (made && !pair) made = tl::unexpected(pair.error());
    if (pair) of_first = std::move(*pair);
    invitation = made.map([&](const Listener& each) { return std::to_string(each.port) + " " + word; });
    if (made) listener = std::move(*made);
  }
  invitation = share_text(world, invitation);
  if (!invitation) return tl::unexpected(invitation.error());

  Result<void> mine;
  if (world.rank() == 0) {
    auto ranks = admit(listener, word, world.size(), deadline);
    if (ranks) {
      channels.own = std::move(of_first.ours);
      channels.of_ranks = std::move(*ranks);
      channels.of_ranks.front() = std::move(of_first.theirs);
    } else {
      mine = tl::unexpected(ranks.error());
    }
  } else {
    const auto space = invitation->find(' ');
    auto reached =
        reach(meeting.one_host() ? "127.0.0.1" : meeting.identity().master_addr, std::atoi(invitation->c_str()),
              invitation->substr(space + 1) + " " + std::to_string(world.rank()) + "\n", deadline);
    if (reached)
      channels.own = std::move(*reached);
    else
      mine = tl::unexpected(reached.error());
  }
  // A rank that could not reach rank 0 reports why in its own words.
  const auto verdict = share_text(world, mine ? Result<std::string>("met") : tl::unexpected(mine.error()));
  if (!mine) return tl::unexpected(mine.error());
  if (!verdict) return tl::unexpected(verdict.error());
  return channels;
}

}  // namespace accrue
