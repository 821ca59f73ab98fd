// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "accrue/run/spec_io.h"
#include "verbs.h"

namespace accrue::cli {

void add_spec(CLI::App& app, int& status) {
  struct Options {
    bool defaults = false;
    bool schema = false;
  };
  auto options = std::make_shared<Options>();
  auto* verb = app.add_subcommand("spec", "Print every key with its default, or the JSON Schema of a spec");
  auto* what = verb->add_option_group("what");
  what->add_flag("--defaults", options->defaults, "Every key with its default, unit, range and help");
  what->add_flag("--schema", options->schema, "A JSON Schema (draft 2020-12)");
  what->require_option(1);
  verb->callback([options, &status] {
    std::fputs((options->schema ? json_schema() : annotated_defaults()).c_str(), stdout);
    status = status_done;
  });
}

}  // namespace accrue::cli
