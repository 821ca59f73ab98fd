// SPDX-License-Identifier: Apache-2.0
#include "text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "accrue/run/base/utf8.h"
#include "trimmed.h"

namespace accrue {

namespace {

/// Separator of the first line, outside its quotes.
char separator_of(std::string_view text) {
  constexpr std::string_view separators = ";,\t";  // in a tie the first
  text.remove_prefix(std::min(text.find_first_not_of(" \r\n"), text.size()));
  const std::string_view rest = text.substr(0, text.find_first_of("\r\n"));
  const std::string_view line = rest.substr(0, rest.find_last_not_of(" \t") + 1);
  const auto is_digit = [&](std::size_t at) { return at < line.size() && line[at] >= '0' && line[at] <= '9'; };
  std::size_t counts[separators.size()] = {};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (quoted || (line[i] == ',' && is_digit(i - 1) && is_digit(i + 1))) continue;
    if (const auto at = separators.find(line[i]); at != std::string_view::npos) ++counts[at];
  }
  const auto* const most = std::ranges::max_element(counts);
  return *most == 0 ? ',' : separators[static_cast<std::size_t>(most - counts)];
}

}  // namespace

TableRows::TableRows(std::string_view text, const std::string& file, std::size_t most_columns)
    : text_(text.substr(text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0)),
      file_(file),
      most_columns_(most_columns),
      separator_(separator_of(text_)) {}

Result<bool> TableRows::next(std::vector<std::string>& fields) {
  while (!text_.empty()) {
    row_line_ = line_;
    fields.clear();
    const auto first = text_.find_first_not_of(" \t");
    const bool blank = first == std::string_view::npos || text_[first] == '\r' || text_[first] == '\n';
    if (auto taken = take_row(fields); !taken) return tl::unexpected(taken.error());
    if (!blank) return true;
  }
  return false;
}

std::string TableRows::place(std::optional<std::size_t> column) const {
  return fmt::format("{}:{}{}", file_, row_line_, column ? fmt::format(": column {}", *column + 1) : "");
}

Result<void> TableRows::take_row(std::vector<std::string>& fields) {
  const char ends[] = {separator_, '\r', '\n'};
  const auto spaces = [&] { return std::min(text_.find_first_not_of(separator_ == '\t' ? " " : " \t"), text_.size()); };
  while (true) {
    if (fields.size() == most_columns_)
      return fail(ErrorCode::config, fmt::format("the row has more than {} columns", most_columns_), place(),
                  "Leave out the columns that are not used.");
    if (text_.substr(spaces()).starts_with('"')) {
      text_.remove_prefix(spaces());
      auto field = take_quoted(fields.size());
      if (!field) return tl::unexpected(field.error());
      fields.push_back(std::move(*field));
      text_.remove_prefix(spaces());
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
      ended_ = text_.find_first_of("\r\n") != std::string_view::npos;
      text_ = {};
      return fail(ErrorCode::config, "a quote is opened here and never closed", place(column));
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
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc::result_out_of_range && stop == field.data() + field.size();
}

std::optional<std::string> with_decimal_point(std::string_view field) {
  if (std::ranges::count(field, ',') != 1 || field.find('.') != std::string_view::npos) return std::nullopt;
  std::string text(field);
  text[text.find(',')] = '.';
  return number_of(text) ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace accrue
