// SPDX-License-Identifier: Apache-2.0
#include "detach.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "accrue/run/process/child_process.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

constexpr int child_report_fd = 3;

/// Reads lines of the report: "dir PATH", then "training".
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

}  // namespace

int start_detached(std::vector<std::string> arguments) {
  auto pipe = pipe_to_read("no pipe can be made");
  if (!pipe) return report(pipe.error());
  arguments.insert(arguments.begin(), "accrue-run");
  arguments.push_back("--supervise-fd");
  arguments.push_back(std::to_string(child_report_fd));
  ProcessStart how{.what = "the detached run",
                   .command = std::move(arguments),
                   .program = "/proc/self/exe",
                   .group = ProcessStart::Group::session};
  how.mute({STDIN_FILENO, STDOUT_FILENO});
  how.give(pipe->theirs, child_report_fd);
  auto process = start_process(std::move(how));
  if (!process) return report(process.error());
  pipe->theirs.reset();

  const std::string text = read_report(pipe->ours.get());
  if (text.starts_with("dir ")) put_data(text.substr(4, text.find('\n') - 3));
  std::fflush(stdout);
  if (text.ends_with("training\n")) {
    process->let_go();
    return status_done;
  }
  const ExitReport end = process->wait();
  return end.signal == 0 ? end.status : exit_status(ErrorCode::internal);
}

void DetachedReport::write_line(const std::string& line) {
  if (!fd_) return;
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = ::write(fd_.get(), text.data(), text.size());
}

void DetachedReport::folder(const std::string& dir) {
  write_line("dir " + dir);
}

void DetachedReport::training() {
  if (!fd_) return;
  write_line("training");
  fd_.reset();
  if (const OwnedFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC)); null) ::dup2(null.get(), STDERR_FILENO);
}

}  // namespace accrue::cli
