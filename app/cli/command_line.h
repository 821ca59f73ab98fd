// SPDX-License-Identifier: Apache-2.0
// Command line of accrue-run: its verbs and options. The only place that uses CLI11.
#pragma once

namespace accrue::cli {

/// Parses the command line and executes it; returns the exit status.
int run_command_line(int argc, char** argv);

}  // namespace accrue::cli
