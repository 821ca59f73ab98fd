// SPDX-License-Identifier: Apache-2.0
// toml++ 3.3 parses nested values and dotted keys recursively and limits only the former, so a small file can exhaust
// the stack. One pass over the text counts both without parsing: brackets outside strings, and dots since the last
// character that ends a key. It may misjudge broken TOML, but never a spec that the parser would accept. On some bytes
// that are not UTF-8 toml++ reaches code that it declared unreachable; another pass finds these.
#include "toml_prescan.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "accrue/run/base/utf8.h"

namespace accrue::spec_detail {

namespace {

// Length of the string that starts at text[at], including quotes; a one-line string ends at the line end at the latest.
std::size_t string_length(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string fence(3, quote);
  const bool multiline = text.substr(at, 3) == fence;
  std::size_t i = at + (multiline ? 3 : 1);
  for (; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
      continue;
    }
    if (!multiline && text[i] == '\n') return i - at;
    if (multiline ? text.substr(i, 3) == fence : text[i] == quote) return i - at + (multiline ? 3 : 1);
  }
  return text.size() - at;
}

/// Columns count characters, like the parser's.
Finding placed(Finding finding, std::string_view text, std::size_t at) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  finding.line = 1;
  finding.column = 1;
  for (const char c : text.substr(0, at)) {
    finding.column = c == '\n' ? 1 : finding.column + (begins(c) ? 1 : 0);
    finding.line += c == '\n' ? 1 : 0;
  }
  return finding;
}

Finding too_deep() {
  return {.message = "is nested too deeply",
          .found = "more than " + std::to_string(max_toml_depth) + " levels",
          .expected = "sections with keys, at most a list of lists"};
}

Finding not_utf8(char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  return {.message = "is not valid TOML, for it is not UTF-8",
          .found = std::string("the byte 0x") + digits[value / 16] + digits[value % 16],
          .expected = "text in UTF-8"};
}

}  // namespace

std::optional<Finding> prescan_toml(std::string_view text) {
  if (const std::size_t at = first_not_utf8(text); at != std::string_view::npos)
    return placed(not_utf8(text[at]), text, at);
  int brackets = 0;
  int dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
      case '\'':
        i += string_length(text, i) - 1;
        break;
      case '#':
        i = std::min(text.find('\n', i), text.size()) - 1;
        break;
      case '[':
      case '{':
        ++brackets, dots = 0;
        break;
      case ']':
      case '}':
        brackets -= brackets > 0, dots = 0;
        break;
      case '.':
        ++dots;
        break;
      case '=':
      case ',':
      case '\n':
        dots = 0;
        break;
      default:
        break;
    }
    if (brackets > max_toml_depth || dots > max_toml_depth) return placed(too_deep(), text, i);
  }
  return std::nullopt;
}

std::string toml_words(std::string said) {
  std::replace(said.begin(), said.end(), '\n', ' ');
  constexpr std::string_view begins = "Error ";
  return said.starts_with(begins) ? said.substr(begins.size()) : said;
}

}  // namespace accrue::spec_detail
