// SPDX-License-Identifier: Apache-2.0
// generate: this program computes nothing, so it becomes accrue-rank, which has the model.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "accrue/run/engine_host.h"
#include "verbs.h"

namespace accrue::cli {

int generate_text(const GenerateOptions& options) {
  std::vector<std::string> words{default_rank_program(), "generate", options.dir};
  const auto add = [&](const char* name, const auto& value) {
    words.emplace_back(name);
    words.push_back(fmt::format("{}", value));
  };
  if (!options.prompt.empty()) add("--prompt", options.prompt);
  if (!options.tokens.empty()) add("--tokens", options.tokens);
  add("--length", options.length);
  add("--temperature", options.temperature);
  add("--top-k", options.top_k);
  add("--top-p", options.top_p);
  add("--top-p-decay", options.top_p_decay);
  add("--top-p-bound", options.top_p_bound);
  add("--beams", options.beams);
  add("--length-penalty", options.length_penalty);
  add("--seed", options.seed);
  if (options.add_bos) words.emplace_back("--add-bos");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(arguments.front(), arguments.data());
  const int failed = errno;
  return report({.code = ErrorCode::device,
                 .message = "the program that computes cannot be started: " + std::generic_category().message(failed),
                 .where = words.front(),
                 .hint = "accrue-run doctor checks the installation."});
}

}  // namespace accrue::cli
