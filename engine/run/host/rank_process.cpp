// SPDX-License-Identifier: Apache-2.0
// A rank inherits exactly the descriptors that it needs. It ends when its channel is closed.
#include "rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "accrue/run/base/system_error.h"
#include "accrue/run/host/rank_program.h"
#include "rank_environment.h"

namespace accrue {
namespace {

// Numbers of inherited descriptors in the rank.
constexpr int child_events_fd = 3;
constexpr int child_lock_fd = 4;
constexpr int child_store_fd = 5;

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

Result<OwnedFd> make_store_memory() {
  OwnedFd store(::memfd_create("accrue-store", MFD_CLOEXEC | MFD_ALLOW_SEALING));
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
  auto channel = socket_pair("no channel to a rank can be made");
  if (!channel) return tl::unexpected(channel.error());
  auto output = pipe_to_read("no pipe for a rank's output can be made");
  if (!output) return tl::unexpected(output.error());
  for (const OwnedFd* ours : {&channel->ours, &output->ours}) ::fcntl(ours->get(), F_SETFL, O_NONBLOCK);

  ProcessStart how{.what = fmt::format("rank {}", launch.rank),
                   .command = rank_arguments(launch),
                   .variables = rank_environment(launch),
                   .patience = launch.patience};
  // A log-out, a stopped service and a closed terminal signal the whole process tree. The supervisor handles them for
  // all; a rank that ended by itself would lose the updates since the last checkpoint.
  how.blocked_signals = {SIGINT, SIGTERM, SIGHUP};
  how.mute({0});
  how.give(output->theirs, 1);
  how.give(output->theirs, 2);
  how.give(channel->theirs, child_events_fd);
  if (launch.lock_fd >= 0) how.files.push_back({.number = child_lock_fd, .ours = launch.lock_fd});
  if (launch.store_fd >= 0) how.files.push_back({.number = child_store_fd, .ours = launch.store_fd});
  auto child = start_process(std::move(how));
  if (!child) return tl::unexpected(child.error());
  return RankProcess{std::move(*child), std::move(channel->ours), std::move(output->ours)};
}

std::vector<pid_t> ranks_of_run(const std::filesystem::path& run_dir) {
  // Including the zero bytes around it: the end of another run's longer path must not match.
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
