// SPDX-License-Identifier: Apache-2.0
// run and resume: host a run until it ends, or leave it to a separate process.
#include <cstdio>
#include <filesystem>

#include "accrue/run/host/engine_host.h"
#include "accrue/run/record/run_store.h"
#include "detach.h"
#include "print.h"
#include "run_follower.h"
#include "spec_input.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// Prints how to continue an unfinished run. A run that trained nothing has reported its obstacle; for one without a
/// checkpoint the supervisor has said so.
void tell_how_to_go_on(const std::string& dir, std::int64_t updates_before) {
  const auto run = read_run(dir);
  if (!run || run->state == "finished" || run->updates == updates_before) return;
  if (!run->last_checkpoint.empty())
    say("\"accrue-run resume %s\" continues from %s\n", dir.c_str(), run->last_checkpoint.c_str());
}

/// `before`: record of the continued run.
int follow_hosted(EngineHost& host, const RunOptions& options, const RunSummary& before, DetachedReport& report) {
  const std::string dir = host.run_dir().string();
  report.folder(dir);
  if (!report.active()) {
    put_data(dir + "\n");
    std::fflush(stdout);
  }
  FollowOptions follow_options;
  follow_options.style = report.active() ? ProgressView::Style::quiet : ProgressView::style_for_stderr(options.quiet);
  follow_options.planned_updates = before.planned_updates;
  follow_options.on_training = [&report] { report.training(); };
  const int status = follow(host, follow_options);
  if (status != status_done && status != status_refused && !options.quiet && !report.active())
    tell_how_to_go_on(dir, before.updates);
  return status;
}

}  // namespace

int run_spec(const RunOptions& options) {
  if (options.detach) {
    std::vector<std::string> arguments = {"run", options.input.file};
    for (const auto& set : options.input.sets) arguments.insert(arguments.end(), {"--set", set});
    for (const auto& plugin : options.input.plugins) arguments.insert(arguments.end(), {"--plugin", plugin});
    if (!options.dir.empty()) arguments.insert(arguments.end(), {"--out", options.dir});
    if (options.paused) arguments.emplace_back("--paused");
    return start_detached(std::move(arguments));
  }
  block_handled_signals();
  DetachedReport detached(options.supervise_fd);
  auto plan = plan_from(options.input);
  if (!plan) return status_refused;
  RunSummary before;
  before.planned_updates = plan->totals.updates;
  if (!options.quiet && !detached.active()) say("%s\n", plan->arithmetic().c_str());
  EngineHost host({});
  const auto started = host.start(
      {.plan = *plan, .run_dir = options.dir, .paused = options.paused, .plugins = records_of(plan->libraries)});
  if (!started) return report(started.error());
  return follow_hosted(host, options, before, detached);
}

namespace {

std::vector<std::string> arguments_of(const ResumeOptions& options) {
  std::vector<std::string> arguments = {"resume", options.from};
  if (!options.checkpoint.empty()) arguments.insert(arguments.end(), {"--from", options.checkpoint});
  if (!options.dir.empty()) arguments.insert(arguments.end(), {"--out", options.dir});
  for (const auto& set : options.sets) arguments.insert(arguments.end(), {"--set", set});
  for (const auto& plugin : options.input.plugins) arguments.insert(arguments.end(), {"--plugin", plugin});
  return arguments;
}

int branch_run(const ResumeOptions& options, const std::filesystem::path& from, DetachedReport& detached) {
  const auto point = read_branch_point(from);
  if (!point) return report(point.error());
  auto plan = branch_plan(*point, options.sets, options.input.plugins);
  if (!plan) return status_refused;
  RunSummary before;
  before.planned_updates = plan->totals.updates;
  before.updates = point->checkpoint.update;
  const std::string arithmetic = plan->arithmetic();
  EngineHost host({});
  const auto started =
      host.branch(*point, {.plan = *plan, .run_dir = options.dir, .plugins = records_of(plan->libraries)});
  if (!started) return report(started.error());
  if (!options.quiet && !detached.active()) say("%s\n", arithmetic.c_str());
  return follow_hosted(host, options, before, detached);
}

}  // namespace

int resume_run(const ResumeOptions& options) {
  if (options.detach) return start_detached(arguments_of(options));
  block_handled_signals();
  DetachedReport detached(options.supervise_fd);
  std::filesystem::path from = options.from;
  if (!options.checkpoint.empty()) from = from / "checkpoints" / options.checkpoint;
  if (!options.dir.empty()) return branch_run(options, from, detached);
  EngineHost host({});
  if (const auto found = read_run(options.from)) warn_of(found->problems);
  const auto resumed = host.resume(from, options.input.plugins);
  if (!resumed) return report(resumed.error());
  return follow_hosted(host, options, read_run(*resumed).value_or(RunSummary{}), detached);
}

}  // namespace accrue::cli
