// SPDX-License-Identifier: Apache-2.0
// accrue-run: plans, trains, follows, shows and compares runs without a window. Output for programs goes to standard
// output, everything for people to standard error.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "accrue/run/base/standard_streams.h"
#include "command_line.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {

int report(const Error& error) {
  say("accrue-run: %s\n", error.text().c_str());
  return exit_status(error.code);
}

void warn_of(const std::vector<std::string>& problems, const std::string& where) {
  for (const std::string& problem : problems) say("accrue-run: %s%s\n", where.c_str(), problem.c_str());
}

/// A reader that has seen enough ("| head") closes its pipe, which is not a failure.
static bool reader_left() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Returns the status, unless the output was not delivered: a full disk must not leave half a plan and exit 0.
static int status_of_output(int status) {
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (arrived || reader_left()) return status;
  const int failed = report({ErrorCode::disk, "what was printed could not be written to standard output", {}, {}});
  return status == status_done ? failed : status;
}

}  // namespace accrue::cli

int main(int argc, char** argv) {
  using namespace accrue::cli;
  accrue::open_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // exceeding a file-size limit then fails the write, like a full disk
  return status_of_output(run_command_line(argc, argv));
}
