// SPDX-License-Identifier: Apache-2.0
#include "program_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "accrue/run/program_group.h"
#include "posix_file.h"
#include "spawn_support.h"

namespace accrue {
namespace {

constexpr int child_pipe_fd = 3;

/// One line of the pipe: a sign and a process.
void follow(std::string_view line, std::vector<pid_t>& alive) {
  pid_t pid = 0;
  if (line.size() < 2 || std::from_chars(line.data() + 1, line.data() + line.size(), pid).ec != std::errc() || pid <= 1)
    return;
  if (line.front() == '+')
    alive.push_back(pid);
  else
    std::erase(alive, pid);
}

}  // namespace

Result<ProgramGuard> ProgramGuard::start(std::vector<std::string> command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("no pipe to the ranks' guard can be made", errno);
  OwnedFd read_low(ends[0]);
  OwnedFd write_low(ends[1]);
  const OwnedFd read_end = lifted(read_low.get());
  ProgramGuard guard;
  guard.pipe_ = lifted(write_low.get());
  if (!read_end || !guard.pipe_) return system_error("no pipe to the ranks' guard can be made", errno);

  SpawnSettings settings;
  ::posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  for (const int out : {1, 2}) ::posix_spawn_file_actions_addopen(&settings.actions, out, "/dev/null", O_WRONLY, 0);
  settings.give(read_end.get(), child_pipe_fd);
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, child_pipe_fd + 1);
  auto environment = Environment::allowed().entries();
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, command.front().c_str(), &settings.actions, &settings.attributes,
                                  pointers(command).data(), pointers(environment).data());
  if (error != 0) return system_error("the ranks' guard cannot be started", error);
  guard.process_ = RankProcess(pid, OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), {}, {});
  return guard;
}

void ProgramGuard::tell(char sign, pid_t pid) {
  if (pipe_) write_all(pipe_.get(), fmt::format("{}{}\n", sign, pid));
}

void guard_programs(int fd) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  std::vector<pid_t> alive;
  std::string text;
  char bytes[4096];
  for (;;) {
    const auto count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(bytes, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      follow(std::string_view(text).substr(begin, end - begin), alive);
      begin = end + 1;
    }
    text.erase(0, begin);
  }
  for (const pid_t pid : alive) ::kill(-pid, SIGKILL);
}

}  // namespace accrue
