// SPDX-License-Identifier: Apache-2.0
#include "pattern.h"

#include <fmt/format.h>

namespace accrue::tokenize {
namespace {

/// Bounds of a search, in ICU's units: about a second, and a stack of 64 MiB.
constexpr std::int32_t longest_search = 1000;
constexpr std::int32_t largest_stack = 64 << 20;

Result<std::shared_ptr<URegularExpression>> compiled(const std::string& source, std::uint32_t flags) {
  const Text wide = to_utf16(source);
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
  auto made = compiled((regex.is_string() ? regex : text).get<std::string>(), regex.is_string() ? 0 : UREGEX_LITERAL);
  if (!made) return tl::unexpected(made.error());
  Pattern pattern;
  pattern.regex_ = *std::move(made);
  pattern.source_ = (regex.is_string() ? regex : text).get<std::string>();
  return pattern;
}

Result<Pattern> Pattern::of_regex(const std::string& regex) {
  return of(json{{"Regex", regex}});
}

Result<std::vector<Stretch>> Pattern::divide(const Text& text) const {
  std::vector<Stretch> found;
  UErrorCode error = U_ZERO_ERROR;
  uregex_setText(regex_.get(), text.data(), static_cast<std::int32_t>(text.size()), &error);
  std::size_t end = 0;
  while (uregex_findNext(regex_.get(), &error) != 0) {
    const auto from = static_cast<std::size_t>(uregex_start(regex_.get(), 0, &error));
    const auto to = static_cast<std::size_t>(uregex_end(regex_.get(), 0, &error));
    if (U_FAILURE(error) || from == to) continue;
    if (from > end) found.push_back({end, from, false});
    found.push_back({from, to, true});
    end = to;
  }
  if (U_FAILURE(error))
    return fail(ErrorCode::data, fmt::format("the tokenizer's pattern {} takes too long on the text ({})",
                                             shown(source_), u_errorName(error)));
  if (end < text.size()) found.push_back({end, text.size(), false});
  return found;
}

}  // namespace accrue::tokenize
