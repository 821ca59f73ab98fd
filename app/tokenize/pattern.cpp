// SPDX-License-Identifier: Apache-2.0
#include "pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace accrue::tokenize {
namespace {

/// Bounds of the search for one match: steps in ICU's units of 10,000, a fraction of a second; and a stack of 64 MiB.
constexpr std::int32_t longest_search = 1000;
constexpr std::int32_t largest_stack = 64 << 20;

/// Hugging Face's library uses Oniguruma with Ruby's rules, under which some escapes mean other characters than ICU's.
std::string by_ruby(const std::string& source) {
  constexpr std::pair<char, const char*> others[] = {{'w', R"([\p{Alphabetic}\p{M}\p{N}\p{Pc}])"},
                                                     {'W', R"([^\p{Alphabetic}\p{M}\p{N}\p{Pc}])"},
                                                     {'h', "[0-9a-fA-F]"},
                                                     {'H', "[^0-9a-fA-F]"}};
  std::string text;
  for (std::size_t at = 0; at < source.size(); ++at) {
    const bool escapes = source[at] == '\\' && at + 1 < source.size();
    const auto other =
        escapes ? std::ranges::find(others, source[at + 1], &std::pair<char, const char*>::first) : std::end(others);
    if (other != std::end(others))
      text += other->second;
    else
      text.append(source, at, escapes ? 2 : 1);
    at += escapes ? 1 : 0;
  }
  return text;
}

Result<std::shared_ptr<URegularExpression>> compiled(const std::string& source, bool is_regex) {
  if (is_regex && source.find("(?m") != std::string::npos)
    return unsupported(fmt::format("the pattern {}, whose (?m) means other things here", shown(source)));
  // In Ruby each line has a beginning and an end, and a newline alone ends it.
  const std::uint32_t flags = is_regex ? UREGEX_MULTILINE | UREGEX_UNIX_LINES : UREGEX_LITERAL;
  const Text wide = to_utf16(is_regex ? by_ruby(source) : source);
  UErrorCode error = U_ZERO_ERROR;
  UParseError place{};
  std::shared_ptr<URegularExpression> regex(
      uregex_open(wide.data(), static_cast<std::int32_t>(wide.size()), flags, &place, &error), &uregex_close);
  if (U_FAILURE(error) || wide.empty())
    return unsupported(fmt::format("the pattern {}, which ICU does not read ({})", shown(source), u_errorName(error)));
  uregex_setTimeLimit(regex.get(), longest_search, &error);
  uregex_setStackLimit(regex.get(), largest_stack, &error);
  return regex;
}

}  // namespace

Result<Pattern> Pattern::of(const json& part) {
  const json& regex = part_of(part, "Regex");
  const json& text = part_of(part, "String");
  if (!regex.is_string() && !text.is_string()) return broken("a pattern is neither Regex nor String");
  auto made = compiled((regex.is_string() ? regex : text).get<std::string>(), regex.is_string());
  if (!made) return tl::unexpected(made.error());
  Pattern pattern;
  pattern.regex_ = *std::move(made);
  pattern.source_ = (regex.is_string() ? regex : text).get<std::string>();
  return pattern;
}

Result<Pattern> Pattern::of_regex(const std::string& regex) {
  return of(json{{"Regex", regex}});
}

/// Each search has a limit of its own. An empty match behind another one is none.
Result<std::vector<Stretch>> Pattern::divide(const Text& text) const {
  std::vector<Stretch> found;
  UErrorCode error = U_ZERO_ERROR;
  uregex_setText(regex_.get(), text.data(), static_cast<std::int32_t>(text.size()), &error);
  std::size_t end = 0, next = 0;
  while (next <= text.size() && uregex_find(regex_.get(), static_cast<std::int32_t>(next), &error) != 0) {
    const auto from = static_cast<std::size_t>(uregex_start(regex_.get(), 0, &error));
    const auto to = static_cast<std::size_t>(uregex_end(regex_.get(), 0, &error));
    next = to;
    if (from == to) {
      if (next < text.size())
        U16_FWD_1(text.data(), next, text.size());
      else
        ++next;
      if (from == end && !found.empty() && found.back().matches) continue;
    }
    if (from > end) found.push_back({end, from, false});
    found.push_back({from, to, true});
    end = to;
  }
  if (U_FAILURE(error))
    return fail(ErrorCode::data,
                fmt::format("the tokenizer's pattern {} takes too {} on the text", shown(source_),
                            error == U_REGEX_STACK_OVERFLOW ? "much memory" : "long"),
                {}, "Divide the text into shorter documents");
  if (end < text.size()) found.push_back({end, text.size(), false});
  return found;
}

}  // namespace accrue::tokenize
