// SPDX-License-Identifier: Apache-2.0
// run and resume: host a run until it ends, or leave it to a process of its own.
#include <cstdio>
#include <filesystem>

#include "accrue/run/engine_host.h"
#include "accrue/run/run_store.h"
#include "detach.h"
#include "run_follower.h"
#include "spec_input.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// Where resuming would go on, for a run that did not come to its end. Where there is no checkpoint, the supervisor has
/// said so.
void tell_how_to_go_on(const std::string& dir) {
  const auto run = read_run(dir);
  if (run && !run->last_checkpoint.empty())
    std::fprintf(stderr, "\"accrue-run resume %s\" continues from %s\n", dir.c_str(), run->last_checkpoint.c_str());
}

int follow_hosted(EngineHost& host, const RunOptions& options, std::int64_t planned_updates, DetachedReport& report) {
  const std::string dir = host.run_dir().string();
  report.folder(dir);
  if (!report.active()) {
    std::printf("%s\n", dir.c_str());
    std::fflush(stdout);
  }
  FollowOptions follow_options;
  follow_options.style = report.active() ? ProgressView::Style::quiet : ProgressView::style_for_stderr(options.quiet);
  follow_options.planned_updates = planned_updates;
  follow_options.on_training = [&report] { report.training(); };
  const int status = follow(host, follow_options);
  if (status != status_done && status != status_refused && !options.quiet && !report.active()) tell_how_to_go_on(dir);
  return status;
}

}  // namespace

int run_spec(const RunOptions& options) {
  if (options.detach) {
    std::vector<std::string> arguments = {"run", options.input.file};
    for (const auto& set : options.input.sets) arguments.insert(arguments.end(), {"--set", set});
    if (!options.dir.empty()) arguments.insert(arguments.end(), {"--out", options.dir});
    return start_detached(std::move(arguments));
  }
  block_handled_signals();
  DetachedReport detached(options.supervise_fd);
  auto plan = plan_from(options.input);
  if (!plan) return status_refused;
  const auto planned_updates = plan->totals.updates;
  if (!options.quiet && !detached.active()) std::fprintf(stderr, "%s\n", plan->arithmetic().c_str());
  EngineHost host({});
  const auto started = host.start({std::move(*plan), options.dir});
  if (!started) return report(started.error());
  return follow_hosted(host, options, planned_updates, detached);
}

int resume_run(const RunOptions& options) {
  if (options.detach) return start_detached({"resume", options.dir});
  block_handled_signals();
  DetachedReport detached(options.supervise_fd);
  EngineHost host({});
  if (const auto before = read_run(options.dir)) warn_of(before->problems);
  const auto resumed = host.resume(options.dir);
  if (!resumed) return report(resumed.error());
  const auto run = read_run(*resumed);
  return follow_hosted(host, options, run ? run->planned_updates : 0, detached);
}

}  // namespace accrue::cli
