// SPDX-License-Identifier: Apache-2.0
// The forker forks twice: the rank's first parent ends at once, and the kernel makes the rank a child of the test,
// which has declared itself the reaper of its descendants. So the test waits for ranks as for any child.
#include "support/rank_forker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>

namespace accrue::test {
namespace {

constexpr std::size_t most_descriptors = 8;
constexpr int first_own_descriptor = 3;
constexpr std::size_t most_bytes = 64 << 20;

[[noreturn]] void refuse(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void put(std::string& text, const std::string& word) {
  const std::size_t size = word.size();
  text.append(reinterpret_cast<const char*>(&size), sizeof size).append(word);
}

void put(std::string& text, const std::vector<std::string>& words) {
  put(text, std::to_string(words.size()));
  for (const std::string& word : words) put(text, word);
}

std::string take(const std::string& text, std::size_t& at) {
  std::size_t size = 0;
  std::memcpy(&size, text.data() + at, sizeof size);
  at += sizeof size + size;
  return text.substr(at - size, size);
}

std::vector<std::string> take_all(const std::string& text, std::size_t& at) {
  std::vector<std::string> words(std::stoul(take(text, at)));
  for (std::string& word : words) word = take(text, at);
  return words;
}

/// False at the end of the stream.
bool read_all(int fd, void* into, std::size_t bytes) {
  auto* to = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int fd, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

/// The size of the message that follows, with the descriptors.
bool send_head(int socket, std::size_t size, const std::vector<int>& descriptors) {
  iovec part{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most_descriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof size);
}

bool receive_head(int socket, std::size_t& size, std::vector<int>& descriptors) {
  iovec part{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most_descriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof size)) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return false;
  descriptors.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(descriptors.data(), CMSG_DATA(header), sizeof(int) * descriptors.size());
  return true;
}

/// In the rank: moves its descriptors into place, closes all others and sets its environment.
void take_place(std::vector<int> descriptors, const std::vector<std::string>& environment) {
  const int high = 64;
  for (int& each : descriptors) each = ::fcntl(each, F_DUPFD_CLOEXEC, high);
  const int none = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(none, STDIN_FILENO);
  ::dup2(descriptors[0], STDOUT_FILENO);
  ::dup2(descriptors[0], STDERR_FILENO);
  const int end = first_own_descriptor + static_cast<int>(descriptors.size()) - 1;
  for (std::size_t i = 1; i < descriptors.size(); ++i)
    ::dup2(descriptors[i], first_own_descriptor + static_cast<int>(i) - 1);
  ::close_range(static_cast<unsigned>(end), ~0U, 0);
  ::clearenv();
  for (const std::string& line : environment) {
    const auto equals = line.find('=');
    ::setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
  }
}

/// In the forker: the rank's pid; -1 if there is none.
pid_t fork_rank(const std::string& request, const std::vector<int>& descriptors, const RankForker::Main& main) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t between = ::fork();
  if (between == 0) {
    const pid_t rank = ::fork();
    if (rank != 0) {
      const bool told = ::write(ends[1], &rank, sizeof rank) == static_cast<ssize_t>(sizeof rank);
      ::_exit(told ? 0 : 1);
    }
    std::size_t at = 0;
    const std::string body = take(request, at);
    const auto arguments = take_all(request, at);
    take_place(descriptors, take_all(request, at));
    const int status = main(body, arguments);
    std::fflush(nullptr);
    ::_exit(status);  // without the destructors of the libraries, which the forker still uses
  }
  ::close(ends[1]);
  pid_t rank = -1;
  if (between < 0 || !read_all(ends[0], &rank, sizeof rank)) rank = -1;
  ::close(ends[0]);
  if (between > 0) ::waitpid(between, nullptr, 0);
  return rank;
}

[[noreturn]] void serve(int socket, const RankForker::Main& main) {
  for (;;) {
    std::size_t size = 0;
    std::vector<int> descriptors;
    if (!receive_head(socket, size, descriptors) || size > most_bytes) ::_exit(0);
    std::string request(size, '\0');
    if (!read_all(socket, request.data(), size)) ::_exit(0);
    const pid_t rank = fork_rank(request, descriptors, main);
    for (const int each : descriptors) ::close(each);
    if (!write_all(socket, &rank, sizeof rank)) ::_exit(0);
  }
}

}  // namespace

RankForker::RankForker(Main main) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) refuse("socketpair");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) refuse("prctl(PR_SET_CHILD_SUBREAPER)");
  pid_ = ::fork();
  if (pid_ < 0) refuse("fork");
  if (pid_ == 0) {
    ::close(ends[0]);
    serve(ends[1], main);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

RankForker::~RankForker() {
  ::close(socket_);
  ::waitpid(pid_, nullptr, 0);
}

pid_t RankForker::start(const RankStart& rank) {
  std::string request;
  put(request, rank.body);
  put(request, rank.arguments);
  put(request, rank.environment);
  std::vector<int> descriptors{rank.output};
  descriptors.insert(descriptors.end(), rank.descriptors.begin(), rank.descriptors.end());
  pid_t pid = -1;
  const bool served = send_head(socket_, request.size(), descriptors) &&
                      write_all(socket_, request.data(), request.size()) && read_all(socket_, &pid, sizeof pid);
  if (!served || pid < 0) throw std::system_error(ECHILD, std::generic_category(), "no rank could be forked");
  return pid;
}

}  // namespace accrue::test
