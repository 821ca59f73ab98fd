// SPDX-License-Identifier: Apache-2.0
// accrue-rank. The one place where exceptions end: each becomes an Error, which is reported to the supervisor and on
// standard error and determines the exit status.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/megatron/plugin_library.h"
#include "accrue/run/base/printable.h"
#include "accrue/run/base/standard_streams.h"
#include "accrue/run/base/version.h"
#include "rank/arguments.h"
#include "rank/failure.h"
#include "rank/generate.h"
#include "rank/probe.h"
#include "rank/rank_run.h"

namespace {

int train(const accrue::RankArguments& arguments) {
  accrue::RankRun run(arguments);
  accrue::Result<accrue::TrainOutcome> result;
  try {
    result = run.run();
  } catch (...) {
    result = tl::unexpected(accrue::current_failure());
  }
  return run.end(result);
}

int generate(const std::vector<std::string>& words) {
  accrue::Result<void> result;
  try {
    result = accrue::generate_from_run(words);
  } catch (...) {
    result = tl::unexpected(accrue::current_failure());
  }
  if (result) return 0;
  std::fprintf(stderr, "accrue-rank: %s\n", accrue::printable(result.error().text()).c_str());
  return accrue::exit_status(result.error().code);
}

/// Describes each library separately; the caller compares them.
int describe_plugins(const std::vector<std::string>& files) {
  std::vector<accrue::PluginFacts> facts;
  for (const std::string& file : files) {
    accrue::megatron::Registry registry;
    facts.push_back(accrue::megatron::load_plugin(file, registry));
  }
  return std::printf("%s\n", accrue::to_json(facts).c_str()) < 0;
}

int run_program(int argc, char** argv) {
  accrue::open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond a file-size limit then fails, as on a full disk
  if (argc > 1 && std::string_view(argv[1]) == "generate") return generate({argv + 2, argv + argc});
  if (argc > 1 && std::string_view(argv[1]) == "plugins") return describe_plugins({argv + 2, argv + argc});
  const auto arguments = accrue::parse_arguments({argv + 1, argv + argc});
  if (!arguments) {
    std::fprintf(stderr, "accrue-rank: %s\n", accrue::printable(arguments.error().text()).c_str());
    return accrue::exit_status(arguments.error().code);
  }
  if (arguments->help) return std::fputs(accrue::usage(), stdout) < 0;
  if (arguments->version) return std::printf("accrue-rank %s\n", accrue::version()) < 0;
  if (arguments->probe) return std::printf("%s\n", accrue::to_json(accrue::probe_facts()).c_str()) < 0;
  return train(*arguments);
}

}  // namespace

// The run is over and its files are closed. LibTorch's static destructors would only take time.
int main(int argc, char** argv) {
  const int status = run_program(argc, argv);
  const bool flushed = std::fflush(nullptr) == 0 || errno == EPIPE;  // a reader that stops reading is not a failure
  std::_Exit(flushed || status != 0 ? status : accrue::exit_status(accrue::ErrorCode::disk));
}
