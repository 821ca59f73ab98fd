// SPDX-License-Identifier: Apache-2.0
// The command line of accrue-run: its verbs and options. The only place that sees CLI11.
#pragma once

namespace accrue::cli {

/// Reads the command line and does what it says; answers the exit status.
int run_command_line(int argc, char** argv);

}  // namespace accrue::cli
