// SPDX-License-Identifier: Apache-2.0
#include "csv_cells.h"
#include "trimmed.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace accrue {
namespace {

std::from_chars_result read_number(std::string_view& cell, double& number) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  return std::from_chars(cell.data(), cell.data() + cell.size(), number);
}

}  // namespace

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find_first_of("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  text.remove_prefix(text.starts_with("\r\n") ? 2 : std::min<std::size_t>(1, text.size()));
  return line;
}

char separator_of(std::string_view line) {
  if (line.find(';') != std::string_view::npos) return ';';
  const bool commas = line.find(',') != std::string_view::npos;
  return !commas && trimmed(line).find('\t') != std::string_view::npos ? '\t' : ',';
}

std::optional<std::vector<std::string>> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells;
  while (true) {
    const auto first = line.find_first_not_of(separator == '\t' ? " " : " \t");
    std::string cell;
    if (first != std::string_view::npos && line[first] == '"') {
      line.remove_prefix(first + 1);
      for (auto quote = line.find('"');; quote = line.find('"')) {
        if (quote == std::string_view::npos) return std::nullopt;
        cell += line.substr(0, quote);
        line.remove_prefix(quote + 1);
        if (!line.starts_with('"')) break;
        cell += '"';
        line.remove_prefix(1);
      }
    }
    const auto end = line.find(separator);
    cell += trimmed(line.substr(0, end));
    cells.push_back(std::move(cell));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

std::optional<double> cell_number(std::string_view cell) {
  double number = 0;
  const auto [end, error] = read_number(cell, number);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool is_word(std::string_view cell) {
  double number = 0;
  const auto [end, error] = read_number(cell, number);
  return !cell.empty() && (error == std::errc::invalid_argument || end != cell.data() + cell.size());
}

}  // namespace accrue
