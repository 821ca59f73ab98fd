// SPDX-License-Identifier: Apache-2.0
// The verbs of accrue-run: each adds its subcommand, whose callback leaves the exit status in `status`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "accrue/run/result.h"

namespace accrue::cli {

inline constexpr int status_done = 0;
inline constexpr int status_refused = 2;

void add_spec(CLI::App& app, int& status);
void add_plan(CLI::App& app, int& status);
void add_trace(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);
void add_resume(CLI::App& app, int& status);
void add_attach(CLI::App& app, int& status);
void add_stop(CLI::App& app, int& status);
void add_pause(CLI::App& app, int& status);
void add_continue(CLI::App& app, int& status);
void add_steps(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_compare(CLI::App& app, int& status);
void add_verify(CLI::App& app, int& status);
/// `command`: what stands after "--" on the command line.
void add_launch(CLI::App& app, int& status, std::vector<std::string> command);
void add_doctor(CLI::App& app, int& status);

/// Prints an error on standard error and answers its exit status.
int report(const Error& error);
/// Prints what is wrong with a run's record on standard error, a line each; `where` comes before each.
void warn_of(const std::vector<std::string>& problems, const std::string& where = {});

}  // namespace accrue::cli
