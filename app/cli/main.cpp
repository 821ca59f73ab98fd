// SPDX-License-Identifier: Apache-2.0
// accrue-run: plans, trains, follows, shows and compares runs without a window. What a program may read goes to
// standard output, everything for people to standard error.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "accrue/run/standard_streams.h"
#include "accrue/run/version.h"
#include "printable.h"
#include "verbs.h"

namespace accrue::cli {

int report(const Error& error) {
  std::fprintf(stderr, "accrue-run: %s\n", printable(error.text()).c_str());
  return exit_status(error.code);
}

void warn_of(const std::vector<std::string>& problems, const std::string& where) {
  for (const std::string& problem : problems)
    std::fprintf(stderr, "accrue-run: %s%s\n", printable(where).c_str(), printable(problem).c_str());
}

/// Where the words after "launch ... --" begin: another program's, in which nothing here is looked for.
static int first_of_another_program(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "launch") return argc;
  for (int i = 2; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") return i + 1;
  return argc;
}

/// A reader that has seen enough ("| head") closes its pipe, which is no failure of ours.
static bool reader_left() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// The status, unless what was printed did not arrive: a full disk must not leave half a plan and exit 0.
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
  ::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then a write that fails, like a full disk
  const int others = first_of_another_program(argc, argv);
  CLI::App app{"Trains runs of Accrue without a window.", "accrue-run"};
  app.set_version_flag("--version", accrue::version());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(
      "Exit status: 0 done, 2 refused before the start, 3 the training failed, 4 ranks were lost,\n"
      "5 disk or store, 130 stopped by the user.");
  int status = status_done;
  add_spec(app, status);
  add_plan(app, status);
  add_trace(app, status);
  add_run(app, status);
  add_resume(app, status);
  add_attach(app, status);
  add_stop(app, status);
  add_pause(app, status);
  add_continue(app, status);
  add_steps(app, status);
  add_show(app, status);
  add_compare(app, status);
  add_verify(app, status);
  add_launch(app, status, {argv + others, argv + argc});
  add_doctor(app, status);
  try {
    app.parse(others < argc ? others - 1 : argc, argv);
  } catch (const CLI::RequiredError& error) {
    const auto unknown = app.remaining();
    if (unknown.empty()) return app.exit(error) == 0 ? status_done : status_refused;
    std::fprintf(stderr, "accrue-run: there is no subcommand \"%s\"\nRun with --help for more information.\n",
                 unknown.front().c_str());
    return status_refused;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? status_done : status_refused;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "accrue-run: %s\n", error.what());
    return accrue::exit_status(accrue::ErrorCode::internal);
  }
  return status_of_output(status);
}
