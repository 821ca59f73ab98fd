// SPDX-License-Identifier: Apache-2.0
#include "program_guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "posix_file.h"
#include "rank_environment.h"

namespace accrue {
namespace {

constexpr int child_pipe_fd = 3;

/// Handles one line of the pipe: a sign and a process.
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
  auto pipe = pipe_to_write("no pipe to the ranks' guard can be made");
  if (!pipe) return tl::unexpected(pipe.error());
  ProcessStart how{.what = "the ranks' guard", .command = std::move(command)};
  how.variables = Environment::allowed().entries();
  how.mute({0, 1, 2});
  how.give(pipe->theirs, child_pipe_fd);
  auto process = start_process(std::move(how));
  if (!process) return tl::unexpected(process.error());
  ProgramGuard guard;
  guard.pipe_ = std::move(pipe->ours);
  guard.process_ = std::move(*process);
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
