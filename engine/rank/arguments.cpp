// SPDX-License-Identifier: Apache-2.0
#include "rank/arguments.h"

#include <charconv>
#include <map>

namespace accrue {
namespace {

tl::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::config, std::move(message), "command line", "accrue-rank --help lists the options.");
}

Result<void> check(const RankArguments& arguments) {
  if (arguments.help || arguments.version || arguments.probe) return {};
  if (arguments.supervised() != (arguments.rank >= 0)) return refuse("--rank and --events-fd go together");
  if (arguments.supervised() && arguments.plan.empty()) return refuse("--events-fd needs --plan");
  if (!arguments.plugins.empty() && !arguments.plan.empty())
    return refuse("--plugin goes with a spec; a plan names its libraries itself");
  if (arguments.plan.empty() == arguments.spec.empty()) return refuse("give either --plan FILE or one SPEC.accrue");
  return {};
}

}  // namespace

Result<RankArguments> parse_arguments(const std::vector<std::string>& words) {
  RankArguments arguments;
  const std::map<std::string, bool*> flags{
      {"--help", &arguments.help}, {"--version", &arguments.version}, {"--probe", &arguments.probe}};
  const std::map<std::string, int*> numbers{
      {"--rank", &arguments.rank}, {"--events-fd", &arguments.events_fd}, {"--store-fd", &arguments.store_fd}};
  const std::map<std::string, std::filesystem::path*> paths{{"--plan", &arguments.plan}, {"--out", &arguments.out}};

  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--plugin") {
      if (++i == words.size()) return refuse(word + " needs a value");
      arguments.plugins.push_back(words[i]);
      continue;
    }
    if (const auto flag = flags.find(word); flag != flags.end()) {
      *flag->second = true;
    } else if (numbers.contains(word) || paths.contains(word)) {
      if (++i == words.size()) return refuse(word + " needs a value");
      if (paths.contains(word)) {
        *paths.at(word) = words[i];
        continue;
      }
      int& number = *numbers.at(word);
      const char* end = words[i].data() + words[i].size();
      const auto [at, error] = std::from_chars(words[i].data(), end, number);
      if (error != std::errc{} || at != end || number < 0)
        return refuse(word + " " + words[i] + " is not a number from 0");
    } else if (word.starts_with("-")) {
      return refuse("unknown option " + word);
    } else if (arguments.spec.empty()) {
      arguments.spec = word;
    } else {
      return refuse("more than one spec: " + word);
    }
  }
  if (auto checked = check(arguments); !checked) return tl::unexpected(checked.error());
  return arguments;
}

const char* usage() {
  return "accrue-rank: one rank of a training run.\n"
         "\n"
         "  accrue-rank SPEC.accrue [--out DIR] [--plugin FILE]   under torchrun, srun or mpirun, or alone. DIR is a "
         "new "
         "folder, or that of the same run, which is continued; rank 0 keeps the record there. Without DIR events go to "
         "standard output\n"
         "  accrue-rank --plan FILE [--out DIR]   the same with an existing plan\n"
         "  accrue-rank --plan FILE --rank R --events-fd F [--store-fd S]   as accrue-run and the studio start it\n"
         "  accrue-rank generate DIR ...          text from a run's final weights; see accrue-run generate --help\n"
         "  accrue-rank plugins FILE...           prints what plug-in libraries register as JSON\n"
         "  accrue-rank --probe                   prints facts about this machine and LibTorch as JSON\n"
         "  accrue-rank --version | --help\n";
}

}  // namespace accrue
