// SPDX-License-Identifier: Apache-2.0
// launch: any program as the ranks of one world on this host. Each line of a rank is printed after its rank's number,
// on the stream that the rank wrote it to.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "accrue/run/host/run_keeper.h"
#include "accrue/run/process/guard_programs.h"
#include "accrue/run/process/program_group.h"
#include "accrue/run/record/run_store.h"
#include "print.h"
#include "run_follower.h"
#include "signal_ladder.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

constexpr int guard_fd = 3;

/// Makes the run folder, which rank 0 fills if the program opens a RunRecord; returns its absolute path.
Result<fs::path> make_run_folder(const LaunchOptions& options) {
  std::error_code error;
  if (fs::exists(options.dir, error) && !fs::is_empty(options.dir, error))
    return fail(ErrorCode::config, "the folder is not empty", options.dir, "Name a new one");
  RunOrder order;
  order.run_dir = options.dir;
  order.plan.spec.run.name = fs::path(options.group.command.front()).filename().string();
  order.plan.spec.parallel.data = options.group.ranks;
  order.plan.grid = make_grid(order.plan.spec);
  const auto claimed = claim_loop_folder(order);
  if (!claimed) return tl::unexpected(claimed.error());
  return order.run_dir;
}

std::string text_of(const ProgramEnd& end) {
  return end.signal != 0 ? fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal))
                         : fmt::format("failed with exit status {}", end.status);
}

void print_line(std::int64_t rank, ProgramStream stream, std::string_view line) {
  std::FILE* const file = stream == ProgramStream::output ? stdout : stderr;
  const std::string text = fmt::format("[{}] {}\n", rank, line);
  pass_on(file, text);
  std::fflush(file);
}

void print_end(const ProgramEnd& end, std::int64_t ranks) {
  if (!end.failed()) return;
  say("accrue-run: rank %lld %s%s\n", static_cast<long long>(end.rank), text_of(end).c_str(),
      ranks > 1 ? "; the others are ended" : "");
}

/// Follows until every rank has ended; returns true if the user ended them.
bool follow_group(ProgramGroup& group, const OwnedFd& signals) {
  bool asked_to_stop = false;
  SignalLadder ladder;
  while (group.turn(signals.get())) {
    while (const auto signal = take_signal(signals)) {
      if (ladder.insists(*signal)) {
        say("accrue-run: killing the ranks\n");
        group.kill();
        continue;
      }
      say("%s", std::exchange(asked_to_stop, true)
                    ? "accrue-run: stopping already; the same signal once more kills the ranks\n"
                    : "accrue-run: stopping the ranks; the same signal once more kills them\n");
      *signal == SIGINT ? group.interrupt() : group.terminate();
    }
  }
  return asked_to_stop;
}

/// Records the end of a run whose program has not done so.
Result<void> end_record(const fs::path& dir, const std::optional<ProgramEnd>& failure, bool stopped) {
  if (!failure)
    return end_loop_record(dir,
                           {.outcome = stopped ? "stopped" : "finished",
                            .reason = stopped ? "Stopped by you" : "",
                            .exit_status = stopped ? exit_status(ErrorCode::cancelled) : status_done},
                           {});
  const RankFailed how{.class_name = std::string(to_string(ErrorCode::peer_lost)),
                       .message = fmt::format("Rank {} {}", failure->rank, text_of(*failure)),
                       .what_to_do = fmt::format("See the end of ranks/{}.log", failure->rank),
                       .signal = failure->signal,
                       .exit_status = failure->status};
  return end_loop_record(dir,
                         {.outcome = "failed", .reason = how.message, .exit_status = exit_status(ErrorCode::peer_lost)},
                         {{failure->rank, how}});
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
  const OwnedFd signals = handled_signals();
  fs::path dir;
  if (!options.dir.empty()) {
    const auto made = make_run_folder(options);
    if (!made) return report(made.error());
    dir = *made;
    options.group.log_dir = dir / "ranks";
    options.group.environment.push_back("ACCRUE_RUN_DIR=" + dir.string());
  }
  options.group.guard = {"/proc/self/exe", "launch", "--guard-fd", std::to_string(guard_fd)};
  options.group.on_line = print_line;
  options.group.on_end = [ranks = options.group.ranks](const ProgramEnd& end) { print_end(end, ranks); };
  const auto group = ProgramGroup::start(std::move(options.group));
  if (!group) {
    // Nothing was started, and the folder was empty, so it is restored for the next try.
    std::error_code error;
    if (!dir.empty())
      for (const auto& entry : fs::directory_iterator(dir, error)) fs::remove_all(entry.path(), error);
    return report(group.error());
  }
  const bool stopped = follow_group(**group, signals);
  if (!dir.empty())
    if (auto ended = end_record(dir, (*group)->first_failure(), stopped); !ended) return report(ended.error());
  if ((*group)->first_failure()) return exit_status(ErrorCode::peer_lost);
  return stopped ? exit_status(ErrorCode::cancelled) : status_done;
}

}  // namespace accrue::cli
