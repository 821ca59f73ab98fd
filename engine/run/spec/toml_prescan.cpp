// SPDX-License-Identifier: Apache-2.0
// toml++ 3.3 parses nested values and dotted keys by recursion and limits only the former, so a small file can exhaust
// the stack. One pass over the text counts both without parsing: brackets outside strings, and dots since the last
// character that ends a key. It may misjudge broken TOML, never a spec that the parser would take.
#include "toml_prescan.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace accrue::spec_detail {

namespace {

// Length of the string that starts at text[at], quotes included; a one-line string ends at the line's end at the
// latest.
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

Finding too_deep(std::string_view text, std::size_t at) {
  Finding finding;
  finding.message = "is nested too deeply";
  finding.found = "more than " + std::to_string(max_toml_depth) + " levels";
  finding.expected = "sections with keys, at most a list of lists";
  finding.line = 1;
  finding.column = 1;
  for (std::size_t i = 0; i < at; ++i) {
    finding.column = text[i] == '\n' ? 1 : finding.column + 1;
    finding.line += text[i] == '\n' ? 1 : 0;
  }
  return finding;
}

}  // namespace

std::optional<Finding> prescan_toml(std::string_view text) {
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
    if (brackets > max_toml_depth || dots > max_toml_depth) return too_deep(text, i);
  }
  return std::nullopt;
}

std::string toml_words(std::string said) {
  std::replace(said.begin(), said.end(), '\n', ' ');
  constexpr std::string_view begins = "Error ";
  return said.starts_with(begins) ? said.substr(begins.size()) : said;
}

}  // namespace accrue::spec_detail
