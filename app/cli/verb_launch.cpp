// SPDX-License-Identifier: Apache-2.0
// launch: any program as the ranks of one world on this host. What the ranks print comes line by line, each under its
// rank's number, on the stream that the rank wrote it to.
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "accrue/run/program_group.h"
#include "run_follower.h"
#include "signal_ladder.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

constexpr int guard_fd = 3;

/// DIR/ranks of a folder that is new or empty.
Result<fs::path> make_log_dir(const fs::path& dir) {
  std::error_code error;
  if (fs::exists(dir, error) && !fs::is_empty(dir, error))
    return fail(ErrorCode::config, "the folder is not empty", dir.string(), "Name a new one");
  fs::create_directories(dir / "ranks", error);
  if (error) return fail(ErrorCode::disk, "the folder cannot be made: " + error.message(), dir.string());
  return dir / "ranks";
}

void print_line(std::int64_t rank, ProgramStream stream, std::string_view line) {
  std::FILE* const file = stream == ProgramStream::output ? stdout : stderr;
  const std::string text = fmt::format("[{}] {}\n", rank, line);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

void print_end(const ProgramEnd& end, std::int64_t ranks) {
  if (!end.failed()) return;
  const std::string how = end.signal != 0
                              ? fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal))
                              : fmt::format("failed with exit status {}", end.status);
  std::fprintf(stderr, "accrue-run: rank %lld %s%s\n", static_cast<long long>(end.rank), how.c_str(),
               ranks > 1 ? "; the others are ended" : "");
}

/// The signals that block_handled_signals() holds back, as a descriptor.
class SignalDescriptor {
 public:
  SignalDescriptor() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, number);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~SignalDescriptor() { ::close(fd_); }
  SignalDescriptor(const SignalDescriptor&) = delete;
  SignalDescriptor& operator=(const SignalDescriptor&) = delete;
  int get() const { return fd_; }
  std::optional<int> take() const {
    signalfd_siginfo info{};
    if (::read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  int fd_ = -1;
};

/// Until every rank has ended; true where the user ended them.
bool follow_group(ProgramGroup& group, const SignalDescriptor& signals) {
  bool asked_to_stop = false;
  SignalLadder ladder;
  while (group.turn(signals.get())) {
    while (const auto signal = signals.take()) {
      if (ladder.insists(*signal)) {
        std::fputs("accrue-run: killing the ranks\n", stderr);
        group.kill();
        continue;
      }
      std::fputs(std::exchange(asked_to_stop, true)
                     ? "accrue-run: stopping already; the same signal once more kills the ranks\n"
                     : "accrue-run: stopping the ranks; the same signal once more kills them\n",
                 stderr);
      *signal == SIGINT ? group.interrupt() : group.terminate();
    }
  }
  return asked_to_stop;
}

}  // namespace

int launch_programs(const LaunchOptions& launch) {
  LaunchOptions options = launch;
  if (options.guard >= 0) {
    guard_programs(options.guard);
    return status_done;
  }
  if (options.group.command.empty())
    return report(
        {ErrorCode::config, "no program is named", "launch", "Name it after --: accrue-run launch -n 2 -- ./train"});
  block_handled_signals();
  const SignalDescriptor signals;
  if (!options.dir.empty()) {
    auto logs = make_log_dir(options.dir);
    if (!logs) return report(logs.error());
    options.group.log_dir = std::move(*logs);
  }
  options.group.guard = {"/proc/self/exe", "launch", "--guard-fd", std::to_string(guard_fd)};
  options.group.on_line = print_line;
  options.group.on_end = [ranks = options.group.ranks](const ProgramEnd& end) { print_end(end, ranks); };
  const auto group = ProgramGroup::start(std::move(options.group));
  if (!group) return report(group.error());
  const bool stopped = follow_group(**group, signals);
  if ((*group)->first_failure()) return exit_status(ErrorCode::peer_lost);
  return stopped ? exit_status(ErrorCode::cancelled) : status_done;
}

}  // namespace accrue::cli
