// SPDX-License-Identifier: Apache-2.0
#include "text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "log_text.h"
#include "trimmed.h"

namespace accrue {

namespace {

constexpr std::size_t most_columns = 10'000;

/// Of the first line, outside its quotes.
char separator_of(std::string_view text) {
  constexpr std::string_view separators = ",;\t";
  std::size_t counts[separators.size()] = {};
  bool quoted = false;
  for (const char each : text.substr(std::min(text.find_first_not_of("\r\n"), text.size()))) {
    if (each == '"') quoted = !quoted;
    if (quoted) continue;
    if (each == '\r' || each == '\n') break;
    if (const auto at = separators.find(each); at != std::string_view::npos) ++counts[at];
  }
  return separators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts)];
}

}  // namespace

TableRows::TableRows(std::string_view text, const std::string& file)
    : text_(text), file_(file), separator_(separator_of(text)) {}

Result<bool> TableRows::next(std::vector<std::string>& fields) {
  while (!text_.empty()) {
    row_line_ = line_;
    fields.clear();
    if (auto taken = take_row(fields); !taken) return tl::unexpected(taken.error());
    if (fields.size() > 1 || !fields.front().empty()) return true;
  }
  return false;
}

std::string TableRows::place(std::optional<std::size_t> column) const {
  return fmt::format("{}:{}{}", file_, row_line_, column ? fmt::format(": column {}", *column + 1) : "");
}

Result<void> TableRows::take_row(std::vector<std::string>& fields) {
  const char ends[] = {separator_, '\r', '\n'};
  while (true) {
    if (fields.size() == most_columns)
      return fail(ErrorCode::config, fmt::format("the row has more than {} columns", most_columns), place(),
                  "Leave out the columns that are no curves.");
    const std::string_view spaces = text_.substr(0, std::min(text_.find_first_not_of(' '), text_.size()));
    if (text_.substr(spaces.size()).starts_with('"')) {
      text_.remove_prefix(spaces.size());
      auto field = take_quoted(fields.size());
      if (!field) return tl::unexpected(field.error());
      fields.push_back(std::move(*field));
      text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size()));
    } else {
      const std::string_view field = text_.substr(0, text_.find_first_of({ends, std::size(ends)}));
      text_.remove_prefix(field.size());
      fields.emplace_back(trimmed(field));
    }
    if (text_.starts_with(separator_)) {
      text_.remove_prefix(1);
      continue;
    }
    ended_ = !text_.empty();
    if (!ended_) return {};
    if (!text_.starts_with('\r') && !text_.starts_with('\n'))
      return fail(ErrorCode::config, "the field goes on behind its closing quote", place(fields.size() - 1),
                  "Put a separator between two fields, and write a quote in a quoted field twice.");
    text_.remove_prefix(text_.starts_with("\r\n") ? 2 : 1);
    ++line_;
    return {};
  }
}

Result<std::string> TableRows::take_quoted(std::size_t column) {
  std::string field;
  text_.remove_prefix(1);
  while (true) {
    const auto quote = text_.find('"');
    if (quote == std::string_view::npos) {
      const bool last_line = text_.find_first_of("\r\n") == std::string_view::npos;
      if (!last_line) return fail(ErrorCode::config, "a quote is opened here and never closed", place(column));
      text_ = {};
      cut_ = true;
      return field;
    }
    line_ += std::ranges::count(text_.substr(0, quote), '\n');
    field.append(text_.substr(0, quote));
    text_.remove_prefix(quote + 1);
    if (!text_.starts_with('"')) return field;
    field += '"';
    text_.remove_prefix(1);
  }
}

std::optional<double> number_of(std::string_view field) {
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  double number = 0.0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return number;
}

bool is_out_of_range(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double number = 0.0;
  return std::from_chars(field.data(), field.data() + field.size(), number).ec == std::errc::result_out_of_range;
}

std::optional<std::string> with_decimal_point(std::string_view field) {
  if (std::ranges::count(field, ',') != 1 || field.find('.') != std::string_view::npos) return std::nullopt;
  std::string text(field);
  text[text.find(',')] = '.';
  return number_of(text) ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<std::int64_t> step_of(double number) {
  constexpr double largest = 9e15;  // up to here every whole number is a double
  if (!(number >= 0.0 && number <= largest) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace accrue
