// SPDX-License-Identifier: Apache-2.0
// attach and stop: runs that another process trains.
#include <cstdio>
#include <memory>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/engine_host.h"
#include "accrue/run/run_store.h"
#include "run_follower.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

enum class StopHow { now, checkpoint, kill };

int attach_dir(const std::string& dir, bool quiet) {
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

int stop_dir(const std::string& dir, StopHow how) {
  block_handled_signals();
  EngineHost host({});
  if (const auto attached = host.attach(dir); !attached) return report(attached.error());
  switch (how) {
    case StopHow::now:
      host.stop();
      break;
    case StopHow::checkpoint:
      host.checkpoint_and_stop();
      break;
    case StopHow::kill:
      host.kill();
      break;
  }
  FollowOptions options;
  options.style = ProgressView::Style::quiet;
  options.on_interrupt = OnInterrupt::detach;
  options.needs_control = true;
  const int status = follow(host, options);
  // Whether it was stopped, had finished or failed meanwhile: it has ended, which is what was asked.
  if (!is_over(host.state())) return status;
  const auto run = read_run(dir);
  if (run && run->state == "running") return status;  // its supervisor is gone and ranks still save
  std::fprintf(stderr, "%s\n", run ? ("the run is " + run->state).c_str() : "the run has ended");
  if (run && run->state == "stopped" && checkpoint_mark(run->last_checkpoint).update < run->updates)
    std::fprintf(stderr, "resuming begins %s: \"stop --checkpoint\" saves first\n",
                 run->last_checkpoint.empty() ? "anew" : ("at " + run->last_checkpoint).c_str());
  return status_done;
}

}  // namespace

void add_attach(CLI::App& app, int& status) {
  struct Options {
    std::string dir;
    bool quiet = false;
  };
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("attach", "Follow a run that another process trains; Ctrl+C leaves it running");
  verb->add_option("DIR", options->dir, "The run folder")->required();
  verb->add_flag("--quiet", options->quiet, "Print warnings and errors only");
  verb->callback([options, &status] { status = attach_dir(options->dir, options->quiet); });
}

void add_stop(CLI::App& app, int& status) {
  struct Options {
    std::string dir;
    bool checkpoint = false;
    bool kill = false;
  };
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("stop", "Ask a running run to stop after its micro-step, and wait until it has");
  verb->add_option("DIR", options->dir, "The run folder")->required();
  auto* checkpoint =
      verb->add_flag("--checkpoint", options->checkpoint, "Stop at the end of the update, with a checkpoint");
  verb->add_flag("--kill", options->kill, "Kill the ranks at once")->excludes(checkpoint);
  verb->callback([options, &status] {
    status = stop_dir(options->dir, options->kill         ? StopHow::kill
                                    : options->checkpoint ? StopHow::checkpoint
                                                          : StopHow::now);
  });
}

}  // namespace accrue::cli
