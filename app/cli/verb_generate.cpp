// SPDX-License-Identifier: Apache-2.0
// generate: this program computes nothing, so it becomes accrue-rank, which has the model. If tokens need a tokenizer,
// it stays and converts between the text and accrue-rank.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/system_error.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/host/rank_program.h"
#include "accrue/run/process/child_process.h"
#include "accrue/run/record/run_store.h"
#include "print.h"
#include "tokenizer_process.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Tokens = std::vector<std::int64_t>;

constexpr const char* doctor_hint = "accrue-run doctor checks the installation.";

/// Returns the sidecar of a run's dataset; none for data without one.
Result<std::optional<DatasetSidecar>> sidecar_of_run(const fs::path& dir, fs::path& folder) {
  const SpecReading reading = read_spec(dir / "spec.toml");
  // accrue-rank reports problems of a folder.
  if (!reading.ok() || reading.spec.data.kind != DataKind::indexed || reading.spec.data.paths.empty())
    return std::nullopt;
  const fs::path prefix = dir / reading.spec.data.paths.front();
  folder = prefix.parent_path();
  return read_sidecar(prefix);
}

/// Returns the tokenizer that made a run's tokens, or that the user names. Null if a token is a byte.
Result<std::unique_ptr<TokenizerProcess>> tokenizer_of(const GenerateOptions& options) {
  fs::path folder;
  const auto sidecar = sidecar_of_run(options.dir, folder);
  if (!sidecar) return tl::unexpected(sidecar.error());
  const bool known = *sidecar && (*sidecar)->tokenizer != "bytes" && !(*sidecar)->files.empty();
  if (!known && options.tokenizer.empty()) return nullptr;
  std::string choice = options.tokenizer;
  if (choice.empty()) {
    // Named as when the dataset was built, relative to the folder of that time, which may be that of the dataset.
    fs::path file = (*sidecar)->files.front().path;
    std::error_code ignored;
    if (!fs::exists(file, ignored) && fs::exists(folder / file, ignored)) file = folder / file;
    choice = (*sidecar)->tokenizer + ":" + file.string();
  }
  auto started = TokenizerProcess::start(choice, known && (*sidecar)->keep_case && choice.starts_with("wordpiece:"));
  if (!started) {
    if (options.tokenizer.empty()) started.error().hint = "Say where the tokenizer's file is: --tokenizer KIND:FILE";
    return started;
  }
  if (!known) return started;
  const auto& made = (*sidecar)->files;
  const auto& now = (*started)->facts().files;
  const auto same = [](const TokenizerFile& a, const TokenizerFile& b) { return a.sha256 == b.sha256; };
  if (!std::ranges::equal(made, now, same))
    return fail(ErrorCode::data, "is not the tokenizer that the run's dataset was built with: the file differs", choice,
                "Give that one: --tokenizer KIND:FILE");
  return started;
}

Words rank_words(const GenerateOptions& options) {
  Words words{default_rank_program(), "generate", options.dir};
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
  return words;
}

/// Runs a program and reads its output; its errors go to this program's. Returns the exit status, or 128 and the
/// signal.
Result<int> run_and_read(Words words, std::string& printed) {
  auto pipe = pipe_to_read("no pipe can be made");
  if (!pipe) return tl::unexpected(pipe.error());
  ProcessStart how{.what = "the program that computes",
                   .command = std::move(words),
                   .group = ProcessStart::Group::ours,
                   .inherits = true};
  how.give(pipe->theirs, STDOUT_FILENO);
  auto process = start_process(std::move(how));
  if (!process) {
    process.error().hint = doctor_hint;
    return tl::unexpected(process.error());
  }
  pipe->theirs.reset();
  char part[4096];
  for (;;) {
    const auto count = ::read(pipe->ours.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    printed.append(part, static_cast<std::size_t>(count));
  }
  const ExitReport end = process->wait();
  return end.signal == 0 ? end.status : 128 + end.signal;
}

/// Parses a line of comma-separated numbers.
Tokens tokens_of(const std::string& line) {
  Tokens tokens;
  const char* const end = line.data() + line.size();
  for (const char* at = line.data(); at < end; ++at) {
    std::int64_t token = 0;
    const auto [rest, failed] = std::from_chars(at, end, token);
    if (failed != std::errc{}) break;
    tokens.push_back(token);
    at = rest;
  }
  return tokens;
}

/// Checks for final weights, which an unfinished run lacks.
Result<void> has_final_weights(const fs::path& dir) {
  std::error_code ignored;
  if (fs::exists(dir / "final" / "model.safetensors", ignored)) return {};
  const auto run = read_run(dir);
  if (!run) return tl::unexpected(run.error());
  if (run->state == "finished")
    return fail(ErrorCode::disk, "has finished, and its final/model.safetensors is missing", dir);
  return fail(ErrorCode::config,
              fmt::format("has no final weights yet: {} after {} of {} updates", run->state, run->updates,
                          run->planned_updates),
              dir,
              run->state == "running" ? "Wait for its end"
                                      : fmt::format("accrue-run resume {} trains it to its end", dir.string()));
}

int generate_with(TokenizerProcess& tokenizer, GenerateOptions options) {
  const auto prompt = tokenizer.encode(options.prompt, false);
  if (!prompt) return report(prompt.error());
  if (prompt->empty())
    return report({.code = ErrorCode::config,
                   .message = "the tokenizer finds no token in the text",
                   .where = "--prompt",
                   .hint = "Give more than white space."});
  options.prompt.clear();
  options.tokens = joined(*prompt, ",");
  Words words = rank_words(options);
  const auto end = tokenizer.facts().end_of_document;
  if (end) words.insert(words.end(), {"--eod", fmt::format("{}", *end)});
  std::string printed;
  const auto status = run_and_read(std::move(words), printed);
  if (!status) return report(status.error());
  if (*status != status_done) return *status;
  Tokens tokens = tokens_of(printed);
  if (end) std::erase(tokens, *end);
  const auto text = tokenizer.decode(tokens);
  if (!text) return report(text.error());
  put_data(*text + "\n");
  return status_done;
}

}  // namespace

int generate_text(const GenerateOptions& options) {
  if (options.prompt.empty() && options.tokens.empty())
    return report({.code = ErrorCode::config,
                   .message = "give --prompt TEXT or --tokens IDS",
                   .where = "command line",
                   .hint = "accrue-run generate --help lists the options."});
  if (const auto folder = run_folder_at(options.dir); !folder) return report(folder.error());
  if (const auto ended = has_final_weights(options.dir); !ended) return report(ended.error());
  if (!options.prompt.empty()) {
    auto tokenizer = tokenizer_of(options);
    if (!tokenizer) return report(tokenizer.error());
    if (*tokenizer) return generate_with(**tokenizer, options);
  }
  Words words = rank_words(options);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(arguments.front(), arguments.data());
  return report({.code = ErrorCode::device,
                 .message = "the program that computes cannot be started: " + system_words(errno),
                 .where = words.front(),
                 .hint = doctor_hint});
}

}  // namespace accrue::cli
