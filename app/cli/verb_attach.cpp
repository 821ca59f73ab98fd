// SPDX-License-Identifier: Apache-2.0
// attach and stop: runs of another process.
#include <cstdio>
#include <filesystem>

#include "accrue/run/host/engine_host.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "print.h"
#include "run_follower.h"
#include "verbs.h"

namespace accrue::cli {
int attach_to_run(const AttachOptions& attach) {
  const auto& [dir, quiet] = attach;
  block_handled_signals();
  EngineHost host({});
  if (const auto attached = host.attach(dir); !attached) return report(attached.error());
  const auto run = read_run(dir);
  FollowOptions options;
  options.style = ProgressView::style_for_stderr(quiet);
  options.planned_updates = run ? run->planned_updates : 0;
  options.on_interrupt = OnInterrupt::detach;
  return follow(host, options);
}

int stop_run(const StopOptions& stop) {
  block_handled_signals();
  EngineHost host({});
  if (const auto attached = host.attach(stop.dir); !attached) return report(attached.error());
  if (stop.kill)
    host.kill();
  else if (stop.now)
    host.stop();
  else
    host.checkpoint_and_stop();
  FollowOptions options;
  options.style = ProgressView::Style::quiet;
  options.on_interrupt = OnInterrupt::detach;
  options.needs_control = true;
  const int status = follow(host, options);
  // Whether it was stopped, or had finished or failed meanwhile: it has ended, as requested.
  if (!is_over(host.state())) return status;
  const auto run = read_run(stop.dir);
  if (run && run->state == "running") return status;  // its supervisor is gone and ranks are still saving
  say("%s\n", run ? ("the run is " + run->state).c_str() : "the run has ended");
  std::error_code error;
  // Without a plan the run belongs to a program, which continues by itself.
  const bool has_plan = run && std::filesystem::exists(run->dir / "plan.json", error);
  if (has_plan && run->state == "stopped" && checkpoint_mark(run->last_checkpoint).update < run->updates)
    say("resuming starts %s\n", run->last_checkpoint.empty() ? "over" : ("at " + run->last_checkpoint).c_str());
  return status_done;
}

}  // namespace accrue::cli
