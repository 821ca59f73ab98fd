// SPDX-License-Identifier: Apache-2.0
#include "tokenizer_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "accrue/run/base/utf8.h"

namespace accrue::cli {
namespace {

constexpr int patience_ms = 60'000;
constexpr std::uint64_t most_tokens = std::uint64_t{1} << 28;  ///< of a text
constexpr std::size_t longest_facts = std::size_t{16} << 20;

/// Returns the error in a line of the program, if any.
std::optional<Error> error_in(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("error")) return std::nullopt;
  const auto text = [&json](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
  };
  return Error{.code = ErrorCode::data, .message = text("error"), .where = text("where"), .hint = text("hint")};
}

Result<std::string> program_path() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto program = self.parent_path() / "accrue-tokenize";
  if (error || !std::filesystem::exists(program, error))
    return fail(ErrorCode::device, "the program that runs tokenizers is missing", program.string(),
                "Build or install accrue-tokenize beside this program");
  return program.string();
}

/// The kind and the file of a choice; a file without a kind, or the folder that holds it, is a tokenizer.json.
Result<std::pair<std::string, std::string>> chosen_file(const std::string& choice) {
  constexpr std::array kinds = {"bpe", "wordpiece", "sentencepiece", "unigram", "wordlevel", "json"};
  const auto colon = choice.find(':');
  if (colon != std::string::npos && colon + 1 < choice.size() &&
      std::ranges::find(kinds, choice.substr(0, colon)) != kinds.end())
    return std::pair(choice.substr(0, colon), choice.substr(colon + 1));
  std::error_code error;
  std::filesystem::path path = choice;
  if (std::filesystem::is_directory(path, error)) path /= "tokenizer.json";
  if (std::filesystem::exists(path, error)) return std::pair(std::string("json"), path.string());
  return fail(
      ErrorCode::config, fmt::format("\"{}\" is no tokenizer", choice), "--tokenizer",
      "Give bytes, the path of a tokenizer.json or of its folder, bpe:FILE, wordpiece:FILE or sentencepiece:MODEL");
}

}  // namespace

Result<std::unique_ptr<TokenizerProcess>> TokenizerProcess::start(const std::string& choice, bool keep_case) {
  const auto chosen = chosen_file(choice);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto& [kind, file] = *chosen;
  if (keep_case && kind != "wordpiece" && kind != "json")
    return fail(ErrorCode::config,
                "applies to wordpiece only; other tokenizers keep the case that they were trained with", "--keep-case");
  auto program = program_path();
  if (!program) return tl::unexpected(program.error());
  std::unique_ptr<TokenizerProcess> process(new TokenizerProcess());
  process->file_ = file;
  auto socket = socket_pair("no socket can be made");
  if (!socket) return tl::unexpected(socket.error());
  // A separate group: Ctrl+C first ends the build with a checkpoint.
  ProcessStart how{.what = "the program that runs tokenizers",
                   .command = {*program, kind, process->file_},
                   .group = ProcessStart::Group::own,
                   .inherits = true};
  if (keep_case) how.command.emplace_back("keep-case");
  how.give(socket->theirs, STDIN_FILENO);
  how.give(socket->theirs, STDOUT_FILENO);
  auto started = start_process(std::move(how));
  if (!started) return tl::unexpected(started.error());
  process->process_ = std::move(*started);
  process->socket_ = std::move(socket->ours);
  socket->theirs.reset();  // otherwise this process would not notice the child's end
  if (auto read = process->read_facts(); !read) return tl::unexpected(read.error());
  return process;
}

tl::unexpected<Error> TokenizerProcess::ended() const {
  // If it has worked before, the texts or the dataset are not to blame.
  return fail(facts_.special.vocabulary > 0 ? ErrorCode::protocol : ErrorCode::data,
              "the tokenizer ended or does not answer: its file is perhaps damaged", file_,
              "Give the file as it was trained or published");
}

Result<void> TokenizerProcess::send(const void* from, std::size_t bytes) {
  for (const auto* at = static_cast<const char*>(from); bytes > 0;) {
    const auto count = ::send(socket_.get(), at, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ended();
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> TokenizerProcess::receive(void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return ended();
    const auto count = ::recv(socket_.get(), at, bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ended();
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> TokenizerProcess::read_facts() {
  std::string line;
  for (char each = 0; each != '\n' && line.size() < longest_facts; line.push_back(each))
    if (auto received = receive(&each, 1); !received) return received;
  if (auto error = error_in(line)) return tl::unexpected(*std::move(error));
  auto facts = parse_sidecar(line, file_);
  if (!facts) return tl::unexpected(facts.error());
  facts_ = *std::move(facts);
  return {};
}

Error TokenizerProcess::read_error() {
  std::uint64_t count = 0;
  if (auto received = receive(&count, sizeof count); !received) return received.error();
  if (count > longest_facts) return ended().value();
  std::string line(count, '\0');
  if (auto received = receive(line.data(), line.size()); !received) return received.error();
  auto error = error_in(line);
  return error ? *std::move(error) : ended().value();
}

Result<void> TokenizerProcess::ask(char request, std::uint64_t count, const void* from, std::size_t bytes) {
  if (auto sent = send(&request, 1); !sent) return sent;
  if (auto sent = send(&count, sizeof count); !sent) return sent;
  return send(from, bytes);
}

Result<std::string> TokenizerProcess::decode(const std::vector<std::int64_t>& tokens) {
  const std::vector<std::int32_t> sent(tokens.begin(), tokens.end());
  if (auto asked = ask('d', sent.size(), sent.data(), sent.size() * sizeof sent[0]); !asked)
    return tl::unexpected(asked.error());
  std::uint64_t count = 0;
  if (auto received = receive(&count, sizeof count); !received) return tl::unexpected(received.error());
  constexpr std::uint64_t longest = std::uint64_t{1} << 30;
  if (count > longest) return ended();
  std::string text(count, '\0');
  if (auto received = receive(text.data(), text.size()); !received) return tl::unexpected(received.error());
  return text;
}

Result<std::vector<std::int64_t>> TokenizerProcess::encode(std::string_view text, bool goes_on) {
  if (const std::size_t wrong = first_not_utf8(text); wrong != std::string_view::npos)
    return fail(ErrorCode::data,
                fmt::format("the text is not UTF-8: byte {} of the text that begins \"{}\"", wrong,
                            text.substr(0, std::min<std::size_t>(wrong, 24))),
                {}, "Convert it to UTF-8, or use --tokenizer bytes");
  if (auto asked = ask(goes_on ? 'c' : 'e', text.size(), text.data(), text.size()); !asked)
    return tl::unexpected(asked.error());
  std::uint64_t count = 0;
  if (auto received = receive(&count, sizeof count); !received) return tl::unexpected(received.error());
  if (count == ~std::uint64_t{0}) return tl::unexpected(read_error());
  if (count > most_tokens) return ended();
  std::vector<std::int32_t> tokens(count);
  if (auto received = receive(tokens.data(), tokens.size() * sizeof tokens[0]); !received)
    return tl::unexpected(received.error());
  if (auto received = receive(&left_out_, sizeof left_out_); !received) return tl::unexpected(received.error());
  return std::vector<std::int64_t>(tokens.begin(), tokens.end());
}

}  // namespace accrue::cli
