// SPDX-License-Identifier: Apache-2.0
// Parent-death signals are not used, because they fire when the spawning thread ends.
#include "accrue/run/process/child_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "accrue/run/base/system_error.h"
#include "spawn_watch.h"

namespace accrue {
namespace {

/// Another part of the program reaped it, so its success is unknown.
constexpr ExitReport unknown_end{.status = 1};

/// Settings of posix_spawn besides the program.
struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

/// Moves descriptors for the child above all target numbers, so that placing one never overwrites another. Returns an
/// errno or 0.
int place_files(SpawnSettings& settings, const ProcessStart& how, std::vector<OwnedFd>& lifted) {
  int end = STDERR_FILENO + 1;
  for (const auto& file : how.files) end = std::max(end, file.number + 1);
  for (const auto& file : how.files) {
    if (file.ours < 0) {
      ::posix_spawn_file_actions_addopen(&settings.actions, file.number, file.path.c_str(), file.flags, 0);
      continue;
    }
    lifted.emplace_back(::fcntl(file.ours, F_DUPFD_CLOEXEC, end));
    if (!lifted.back()) return errno;
    ::posix_spawn_file_actions_adddup2(&settings.actions, lifted.back().get(), file.number);
  }
  if (how.inherits) return 0;
  for (int number = STDERR_FILENO + 1; number < end; ++number)
    if (std::ranges::find(how.files, number, &ProcessStart::File::number) == how.files.end())
      ::posix_spawn_file_actions_addclose(&settings.actions, number);
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, end);
  return 0;
}

void set_attributes(SpawnSettings& settings, const ProcessStart& how) {
  short flags = 0;
  if (how.group == ProcessStart::Group::session) flags |= POSIX_SPAWN_SETSID;
  if (how.group == ProcessStart::Group::own) flags |= POSIX_SPAWN_SETPGROUP;  // 0: a group of its own
  if (!how.inherits) {
    flags |= POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    sigset_t all;
    sigset_t blocked;
    ::sigfillset(&all);
    ::sigemptyset(&blocked);
    for (const int number : how.blocked_signals) ::sigaddset(&blocked, number);
    ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
    ::posix_spawnattr_setsigmask(&settings.attributes, &blocked);
  }
  ::posix_spawnattr_setflags(&settings.attributes, flags);
}

/// Converts strings to argv and envp; valid as long as the strings.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// A parent that ignores SIGCHLD, as after a shell's trap "" CHLD, would not learn how its children end.
void hear_of_ends() {
  struct sigaction now {};
  if (::sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

/// Returns an errno or 0.
int spawn(pid_t& pid, const std::string& program, ProcessStart& how) {
  hear_of_ends();
  SpawnSettings settings;
  std::vector<OwnedFd> lifted;
  if (const int error = place_files(settings, how, lifted); error != 0) return error;
  set_attributes(settings, how);
  auto variables = how.variables ? pointers(*how.variables) : std::vector<char*>();
  std::optional<SpawnWatch> watch;
  if (how.patience.count() > 0) watch.emplace(how.patience);
  return ::posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes, pointers(how.command).data(),
                       how.variables ? variables.data() : environ);
}

}  // namespace

Result<ChildProcess> start_process(ProcessStart how) {
  const std::string& program = how.program.empty() ? how.command.front() : how.program;
  ChildProcess child;
  if (const int error = spawn(child.pid_, program, how); error != 0) {
    child.pid_ = -1;
    return fail(ErrorCode::device, fmt::format("{} cannot be started: {}", how.what, system_words(error)), program,
                error == ENOEXEC ? "A script needs a first line that names its interpreter (#!/bin/sh)" : "");
  }
  child.own_group_ = how.group != ProcessStart::Group::ours;
  child.pidfd_ = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept {
  *this = std::move(other);
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(own_group_, other.own_group_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  signal(SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::signal(int number) const {
  // The process is not reaped yet, so its number and its group's cannot have been reused.
  if (running()) ::kill(own_group_ ? -pid_ : pid_, number);
}

std::optional<ExitReport> ChildProcess::take_exit(bool wait) {
  if (!running()) return std::nullopt;
  siginfo_t info{};
  const auto kind = pidfd_ ? static_cast<idtype_t>(P_PIDFD) : P_PID;
  const auto id = static_cast<id_t>(pidfd_ ? pidfd_.get() : pid_);
  int failed = 0;
  do {
    failed = ::waitid(kind, id, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG));
  } while (failed != 0 && errno == EINTR && wait);
  if (failed == 0) {
    if (info.si_pid == 0) return std::nullopt;
    if (own_group_) signal(SIGKILL);  // processes that it left behind
    ::waitid(kind, id, &info, WEXITED | WNOHANG);
  } else if (errno != ECHILD) {
    return std::nullopt;
  }
  let_go();
  if (failed != 0) return unknown_end;
  if (info.si_code == CLD_EXITED) return ExitReport{0, info.si_status};
  return ExitReport{info.si_status, 0};
}

void ChildProcess::let_go() {
  pid_ = -1;
  pidfd_.reset();
}

}  // namespace accrue
