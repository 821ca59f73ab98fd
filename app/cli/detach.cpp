// SPDX-License-Identifier: Apache-2.0
#include "detach.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "print.h"
#include "verbs.h"

extern char** environ;

namespace accrue::cli {
namespace {

constexpr int child_report_fd = 3;

/// Lines of the report; "dir PATH", then "training".
std::string read_report(int fd) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const auto count = ::read(fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(count));
    if (text.ends_with("training\n")) return text;
  }
}

pid_t spawn_self(std::vector<std::string>& arguments, int report_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, report_fd, child_report_fd);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, child_report_fd + 1);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  errno = error;
  return error == 0 ? pid : -1;
}

}  // namespace

int start_detached(std::vector<std::string> arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return report({ErrorCode::internal, std::string("no pipe can be made: ") + std::strerror(errno), {}, {}});
  arguments.insert(arguments.begin(), "accrue-run");
  arguments.push_back("--supervise-fd");
  arguments.push_back(std::to_string(child_report_fd));
  const int report_fd = ::fcntl(ends[1], F_DUPFD_CLOEXEC, child_report_fd + 1);
  ::close(ends[1]);
  const pid_t pid = spawn_self(arguments, report_fd);
  ::close(report_fd);
  if (pid < 0)
    return report({ErrorCode::internal, std::string("the run cannot be detached: ") + std::strerror(errno), {}, {}});

  const std::string text = read_report(ends[0]);
  ::close(ends[0]);
  if (text.starts_with("dir ")) put_data(text.substr(4, text.find('\n') - 3));
  std::fflush(stdout);
  if (text.ends_with("training\n")) return status_done;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : exit_status(ErrorCode::internal);
}

DetachedReport::~DetachedReport() {
  if (fd_ >= 0) ::close(fd_);
}

void DetachedReport::write_line(const std::string& line) {
  if (fd_ < 0) return;
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = ::write(fd_, text.data(), text.size());
}

void DetachedReport::folder(const std::string& dir) {
  write_line("dir " + dir);
}

void DetachedReport::training() {
  if (fd_ < 0) return;
  write_line("training");
  ::close(std::exchange(fd_, -1));
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;
  ::dup2(null, STDERR_FILENO);
  ::close(null);
}

}  // namespace accrue::cli
