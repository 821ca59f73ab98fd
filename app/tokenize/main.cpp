// SPDX-License-Identifier: Apache-2.0
// accrue-tokenize KIND FILE [keep-case] (open_tokenizer() has the kinds): started by accrue-run, one for each build,
// with a socket as its standard input and output. It answers first with a line: the facts of the tokenizer as a
// sidecar, or an error as JSON. A request is a letter and a count in 8 bytes; the answer begins with a count in 8
// bytes:
//   e  so many bytes of text; answered by the tokens, of 4 bytes
//   c  the same for a text that continues the last one
//   d  so many tokens of 4 bytes; answered by the bytes of their text
// Instead of tokens an error may come: the count 2^64 - 1, and then the count and the bytes of the error as JSON.
// Numbers are little-endian. It ends with its input.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer.h"

namespace {

bool read_all(void* to, std::size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const auto count = ::read(STDIN_FILENO, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(const void* from, std::size_t bytes) {
  for (const auto* at = static_cast<const char*>(from); bytes > 0;) {
    const auto count = ::write(STDOUT_FILENO, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

std::string as_json(const accrue::Error& error) {
  const nlohmann::json json = {{"error", error.message}, {"where", error.where}, {"hint", error.hint}};
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (argc < 3) {
    std::fputs("accrue-tokenize: it is started by accrue-run data build --tokenizer\n", stderr);
    return 2;
  }
  const auto opened =
      accrue::tokenize::open_tokenizer(kind, argv[2], argc > 3 && std::string_view(argv[3]) == "keep-case");
  if (!opened) {
    const std::string line = as_json(opened.error()) + "\n";
    write_all(line.data(), line.size());
    return 2;
  }
  const std::string facts = accrue::to_json(opened->facts);
  if (!write_all(facts.data(), facts.size())) return 1;
  constexpr std::uint64_t longest_text = std::uint64_t{1} << 30, most_tokens = longest_text / sizeof(std::int32_t);
  const auto answer = [](const auto& values) {
    const std::uint64_t count = values.size();
    return write_all(&count, sizeof count) && write_all(values.data(), values.size() * sizeof values[0]);
  };
  std::string text;
  accrue::tokenize::Tokens tokens;
  char request = 0;
  for (std::uint64_t count = 0; read_all(&request, 1) && read_all(&count, sizeof count);) {
    if ((request == 'e' || request == 'c') && count <= longest_text) {
      text.resize(count);
      if (!read_all(text.data(), text.size())) return 1;
      const auto encoded = opened->tokenizer->encode(text, request == 'c');
      constexpr std::uint64_t no_tokens = ~std::uint64_t{0};
      const std::int64_t left_out = opened->tokenizer->left_out();
      const bool answered = encoded ? answer(*encoded) && write_all(&left_out, sizeof left_out)
                                    : write_all(&no_tokens, sizeof no_tokens) && answer(as_json(encoded.error()));
      if (!answered) return 1;
    } else if (request == 'd' && count <= most_tokens) {
      tokens.resize(count);
      if (!read_all(tokens.data(), tokens.size() * sizeof tokens[0]) || !answer(opened->tokenizer->decode(tokens)))
        return 1;
    } else {
      return 1;
    }
  }
  return 0;
}
