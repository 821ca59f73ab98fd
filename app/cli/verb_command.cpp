// SPDX-License-Identifier: Apache-2.0
// pause, continue and steps: commands to a run of another process. The answer says that a command was accepted; its
// effect shows in the run's events ("accrue-run attach").
#include <fmt/format.h>

#include <cstdio>

#include "accrue/run/events/host_command.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

int ask(const std::string& dir, const HostCommand& command, const std::string& done) {
  if (const auto state = ask_run(dir, command); !state) return report(state.error());
  say("%s\n", done.c_str());
  return status_done;
}

}  // namespace

int pause_run(const std::string& dir) {
  return ask(dir, {HostVerb::pause}, "pausing after this micro-step");
}

int continue_run(const std::string& dir) {
  return ask(dir, {HostVerb::proceed}, "running");
}

int set_steps(const StepsOptions& options) {
  return ask(options.dir, {HostVerb::set_steps, options.steps},
             fmt::format("N becomes {} at the next boundary", options.steps));
}

}  // namespace accrue::cli
