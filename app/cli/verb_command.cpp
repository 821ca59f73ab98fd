// SPDX-License-Identifier: Apache-2.0
// pause, continue and steps: commands to a run that another process trains. They are asked for and answered; what they
// bring about is told by the run's events ("accrue-run attach").
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "accrue/run/host_command.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

int ask(const std::string& dir, const HostCommand& command, const std::string& done) {
  if (const auto state = ask_run(dir, command); !state) return report(state.error());
  std::fprintf(stderr, "%s\n", done.c_str());
  return status_done;
}

void add_command(CLI::App& app, int& status, const char* name, const char* help, HostVerb verb, const char* done) {
  auto dir = std::make_shared<std::string>();
  auto* added = app.add_subcommand(name, help);
  added->add_option("DIR", *dir, "The run folder")->required();
  added->callback([dir, verb, done, &status] { status = ask(*dir, {verb}, done); });
}

}  // namespace

void add_pause(CLI::App& app, int& status) {
  add_command(app, status, "pause", "Let a running run stand still after its micro-step", HostVerb::pause,
              "pausing after this micro-step");
}

void add_continue(CLI::App& app, int& status) {
  add_command(app, status, "continue", "Let a paused run go on", HostVerb::proceed, "running");
}

void add_steps(CLI::App& app, int& status) {
  struct Options {
    std::string dir;
    std::int64_t steps = 0;
  };
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("steps", "Change the accumulation steps of a running run, from its next window on");
  verb->add_option("DIR", options->dir, "The run folder")->required();
  verb->add_option("N", options->steps, "Micro-steps a window")->required();
  verb->callback([options, &status] {
    status = ask(options->dir, {HostVerb::set_steps, options->steps},
                 fmt::format("N becomes {} at the next boundary", options->steps));
  });
}

}  // namespace accrue::cli
