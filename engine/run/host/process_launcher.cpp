// SPDX-License-Identifier: Apache-2.0
// Processes are started from a program with threads, so by posix_spawn instead of fork. Each inherits exactly the
// descriptors that it needs, and has a process group and a pidfd, which unlike a process id is never reused.
// Parent-death signals are not used, because they fire when the spawning thread ends: a rank notices the end of its
// channel instead.
#include "process_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "accrue/run/engine_host.h"
#include "spawn_support.h"
#include "spawn_watch.h"

namespace accrue {
namespace {

// Where a rank finds what it inherits.
constexpr int child_events_fd = 3;
constexpr int child_lock_fd = 4;
constexpr int child_store_fd = 5;
constexpr int first_free_fd = 6;

Result<Pair> channel_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("no channel to a rank can be made", errno);
  OwnedFd first(ends[0]);
  OwnedFd second(ends[1]);
  Pair pair{lifted(first.get()), lifted(second.get())};
  if (!pair.ours || !pair.theirs) return system_error("no channel to a rank can be made", errno);
  ::fcntl(pair.ours.get(), F_SETFL, O_NONBLOCK);
  return pair;
}

std::vector<std::string> rank_arguments(const RankLaunch& launch) {
  std::vector<std::string> arguments = {launch.program,
                                        "--plan",
                                        launch.plan_file.string(),
                                        "--rank",
                                        std::to_string(launch.rank),
                                        "--events-fd",
                                        std::to_string(child_events_fd)};
  if (launch.store_fd >= 0) {
    arguments.push_back("--store-fd");
    arguments.push_back(std::to_string(child_store_fd));
  }
  return arguments;
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int OwnedFd::release() {
  return std::exchange(fd_, -1);
}

void OwnedFd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

RankProcess::RankProcess(pid_t pid, OwnedFd pidfd, OwnedFd events, OwnedFd output)
    : pid_(pid), pidfd_(std::move(pidfd)), events_(std::move(events)), output_(std::move(output)) {}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      events_(std::move(other.events_)),
      output_(std::move(other.output_)) {}

RankProcess& RankProcess::operator=(RankProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(events_, other.events_);
  std::swap(output_, other.output_);
  return *this;
}

RankProcess::~RankProcess() {
  if (!running()) return;
  signal_group(SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void RankProcess::signal_group(int signal) const {
  // The process is not reaped yet, so its number and its group's cannot have been given to another.
  if (running()) ::kill(-pid_, signal);
}

std::optional<ExitReport> RankProcess::reap() {
  if (!running()) return std::nullopt;
  siginfo_t info{};
  const int flags = WEXITED | WNOHANG | WNOWAIT;
  const auto kind = pidfd_ ? static_cast<idtype_t>(P_PIDFD) : P_PID;
  const auto id = static_cast<id_t>(pidfd_ ? pidfd_.get() : pid_);
  if (::waitid(kind, id, &info, flags) == 0) {
    if (info.si_pid == 0) return std::nullopt;
    signal_group(SIGKILL);  // whatever the rank started and left behind
    ::waitid(kind, id, &info, WEXITED | WNOHANG);
  } else if (errno != ECHILD) {
    return std::nullopt;
  }
  pid_ = -1;
  pidfd_.reset();
  if (info.si_code == CLD_EXITED) return ExitReport{0, info.si_status};
  return ExitReport{info.si_status, 0};
}

Result<OwnedFd> make_store_memory() {
  const OwnedFd made(::memfd_create("accrue-store", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  OwnedFd store = made ? lifted(made.get()) : OwnedFd();
  if (!store) return system_error("no memory for the ranks' store can be made", errno);
  return store;
}

std::vector<std::string> rank_environment(const RankLaunch& launch) {
  Environment environment = Environment::allowed();
  environment.set_rank(launch.rank, launch.world, launch.threads);
  environment.set("ACCRUE_RUN_LOCK_FD", std::to_string(child_lock_fd));
  return std::move(environment).entries();
}

std::string default_rank_program() {
  if (const char* program = std::getenv("ACCRUE_RANK_PROGRAM"); program != nullptr && *program != '\0') return program;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "accrue-rank").string();
}

Result<RankProcess> spawn_rank(const RankLaunch& launch) {
  if (::access(launch.program.c_str(), X_OK) != 0)
    return fail(ErrorCode::device, fmt::format("the rank program cannot be started: {}", std::strerror(errno)),
                launch.program, "Build or install accrue-rank beside this program; \"accrue-run doctor\" checks it");
  auto channel = channel_pair();
  if (!channel) return tl::unexpected(channel.error());
  auto output = output_pair();
  if (!output) return tl::unexpected(output.error());

  SpawnSettings settings;
  // A log-out, a stopped service and a closed terminal signal the whole process tree. The supervisor answers for all of
  // it; a rank that ended by itself would lose the updates since the last checkpoint.
  settings.block({SIGINT, SIGTERM, SIGHUP});
  ::posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  settings.give(output->theirs.get(), 1);
  settings.give(output->theirs.get(), 2);
  settings.give(channel->theirs.get(), child_events_fd);
  const OwnedFd lock = launch.lock_fd >= 0 ? lifted(launch.lock_fd) : OwnedFd();
  const OwnedFd store = launch.store_fd >= 0 ? lifted(launch.store_fd) : OwnedFd();
  if (lock) settings.give(lock.get(), child_lock_fd);
  if (store) settings.give(store.get(), child_store_fd);
  if (!lock) ::posix_spawn_file_actions_addclose(&settings.actions, child_lock_fd);
  if (!store) ::posix_spawn_file_actions_addclose(&settings.actions, child_store_fd);
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, first_free_fd);

  auto arguments = rank_arguments(launch);
  auto environment = rank_environment(launch);
  pid_t pid = -1;
  const int error = spawn_in_time(pid, launch.program, settings, arguments, environment, launch.patience);
  if (error != 0)
    return fail(ErrorCode::device, fmt::format("rank {} cannot be started: {}", launch.rank, std::strerror(error)),
                launch.program);
  OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return RankProcess(pid, std::move(pidfd), std::move(channel->ours), std::move(output->ours));
}

std::vector<pid_t> ranks_of_run(const std::filesystem::path& run_dir) {
  // With the zero bytes around it: the end of another run's longer path must not match.
  const std::string plan = '\0' + (run_dir / "plan.json").string() + '\0';
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    const OwnedFd fd(::open((entry.path() / "cmdline").c_str(), O_RDONLY | O_CLOEXEC));
    char text[4096];
    const auto count = fd ? ::read(fd.get(), text, sizeof text) : -1;
    if (count <= 0) continue;
    const std::string_view command(text, static_cast<std::size_t>(count));
    if (command.find(plan) != std::string_view::npos && command.find("--events-fd") != std::string_view::npos)
      found.push_back(pid);
  }
  return found;
}

}  // namespace accrue
