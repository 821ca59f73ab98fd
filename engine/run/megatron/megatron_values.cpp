// SPDX-License-Identifier: Apache-2.0
#include "megatron_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "spec_text.h"
#include "trimmed.h"

namespace accrue::megatron_detail {

namespace {

constexpr std::size_t longest_list = 1024;

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::optional<bool> truth(std::string_view text) {
  constexpr std::array<std::string_view, 6> yes{"true", "yes", "y", "t", "on", "1"};
  constexpr std::array<std::string_view, 6> no{"false", "no", "n", "f", "off", "0"};
  const std::string word = spec_detail::folded(text);
  for (std::size_t i = 0; i < yes.size(); ++i)
    if (word == yes[i] || word == no[i]) return word == yes[i];
  return std::nullopt;
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

template <typename T>
std::optional<SpecValue> some(std::optional<T> value) {
  if (!value) return std::nullopt;
  return SpecValue(std::move(*value));
}

// Elements of "[a, b]", or of "a, b" and "a b" as in an option of Megatron-LM.
std::optional<std::vector<std::string_view>> elements(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('[') != text.ends_with(']')) return std::nullopt;
  if (text.starts_with('[')) text = trimmed(text.substr(1, text.size() - 2));
  std::vector<std::string_view> list;
  while (!text.empty() && list.size() < longest_list) {
    const bool quoted = text.front() == '"' || text.front() == '\'';
    const auto end = quoted ? text.find(text.front(), 1) : text.find_first_of(", \t");
    if (quoted && end == std::string_view::npos) return std::nullopt;
    const auto length = end == std::string_view::npos ? text.size() : end + (quoted ? 1 : 0);
    list.push_back(unquoted(text.substr(0, length)));
    text = trimmed(text.substr(length));
    if (text.starts_with(',')) text = trimmed(text.substr(1));
  }
  return text.empty() ? std::optional(list) : std::nullopt;
}

template <typename T, typename Convert>
std::optional<SpecValue> list_of(std::string_view text, Convert convert) {
  const auto parts = elements(text);
  if (!parts) return std::nullopt;
  std::vector<T> list;
  for (const std::string_view part : *parts) {
    auto value = convert(part);
    if (!value) return std::nullopt;
    list.push_back(std::move(*value));
  }
  return SpecValue(std::move(list));
}

}  // namespace

std::optional<SpecValue> parse_value(FieldType type, std::string_view text) {
  text = trimmed(text);
  const auto as_text = [](std::string_view part) { return std::optional(std::string(part)); };
  switch (type) {
    case FieldType::boolean:
      return some(truth(unquoted(text)));
    case FieldType::integer:
      return some(number<std::int64_t>(unquoted(text)));
    case FieldType::real: {
      const auto real = number<double>(unquoted(text));
      return real && std::isfinite(*real) ? std::optional(SpecValue(*real)) : std::nullopt;
    }
    case FieldType::text:
    case FieldType::choice:
      return SpecValue(std::string(unquoted(text)));
    case FieldType::integers:
      return list_of<std::int64_t>(text, number<std::int64_t>);
    case FieldType::reals:
      return list_of<double>(text, number<double>);
    case FieldType::texts:
      return list_of<std::string>(text, as_text);
    case FieldType::matrix:
      break;
  }
  return std::nullopt;
}

}  // namespace accrue::megatron_detail
