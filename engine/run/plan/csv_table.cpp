// SPDX-License-Identifier: Apache-2.0
// One pass over the text; std::from_chars reads numbers the same in every locale. A table is held whole, in doubles:
// csv is for data that people look at, larger sets are token files.
#include "accrue/run/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "accrue/run/counted.h"
#include "posix_file.h"

namespace accrue {

namespace {

constexpr std::size_t max_csv_bytes = std::size_t{1} << 30;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_of(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// A word that is no number of any kind. A first line with one names the columns; "nan" and "inf" are numbers that no
/// training data may hold, and an empty cell is a hole, so they make no header.
bool is_word(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  if (cell.empty()) return false;
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return error == std::errc::invalid_argument || end != cell.data() + cell.size();
}

class CsvParser {
 public:
  CsvParser(const std::vector<std::string>& labels, const std::string& file) : labels_(labels), file_(file) {}

  Result<CsvTable> parse(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    while (!text.empty()) {
      ++line_;
      const auto end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.empty()) continue;
      if (auto taken = take(cells_of(line)); !taken) return tl::unexpected(taken.error());
    }
    if (table_.rows == 0) return fail(ErrorCode::data, "the table has no row of numbers", file_);
    return std::move(table_);
  }

 private:
  std::string place() const { return file_ + ":" + std::to_string(line_); }

  Result<void> take(const std::vector<std::string_view>& cells) {
    if (width_ == 0) {
      width_ = cells.size();
      const bool header = std::ranges::any_of(cells, is_word);
      if (header) table_.columns.assign(cells.begin(), cells.end());
      if (auto found = find_labels(); !found) return found;
      if (header) return {};
    }
    if (cells.size() != width_)
      return fail(ErrorCode::data,
                  "the row has " + counted(static_cast<std::int64_t>(cells.size()), "column") +
                      " where the first has " + std::to_string(width_),
                  place(), "Give every row the same columns.");
    return take_row(cells);
  }

  Result<void> take_row(const std::vector<std::string_view>& cells) {
    row_.resize(width_);
    for (std::size_t c = 0; c < width_; ++c) {
      const auto number = number_of(cells[c]);
      if (!number)
        return fail(ErrorCode::data, "\"" + std::string(cells[c].substr(0, 40)) + "\" is not a finite number",
                    place() + ": column " + std::to_string(c + 1), "A csv file of training data holds numbers only.");
      row_[c] = *number;
      if (std::ranges::find(label_at_, c) == label_at_.end()) table_.x.push_back(*number);
    }
    for (const std::size_t c : label_at_) table_.y.push_back(row_[c]);
    ++table_.rows;
    return {};
  }

  Result<void> find_labels() {
    if (labels_.empty()) label_at_ = {width_ - 1};
    for (const std::string& label : labels_) {
      const auto named = std::ranges::find(table_.columns, label);
      std::size_t at = static_cast<std::size_t>(named - table_.columns.begin());
      if (named == table_.columns.end()) {
        const auto number = number_of(label);
        const bool inside = number && *number >= 1 && *number <= static_cast<double>(width_);
        if (!inside || *number != std::trunc(*number))
          return fail(ErrorCode::data, "there is no column \"" + label + "\"", file_,
                      "Name columns in data.label_columns as the header line does, or by number from 1.");
        at = static_cast<std::size_t>(*number) - 1;
      }
      if (std::ranges::find(label_at_, at) == label_at_.end()) label_at_.push_back(at);
    }
    if (label_at_.size() >= width_)
      return fail(ErrorCode::data, "no column is left for x", file_, "A table needs inputs beside its labels.");
    table_.outputs = static_cast<std::int64_t>(label_at_.size());
    table_.inputs = static_cast<std::int64_t>(width_) - table_.outputs;
    return {};
  }

  const std::vector<std::string>& labels_;
  const std::string& file_;
  CsvTable table_;
  std::vector<std::size_t> label_at_;
  std::vector<double> row_;
  std::size_t width_ = 0;
  std::int64_t line_ = 0;
};

}  // namespace

Result<CsvTable> parse_csv(std::string_view text, const std::vector<std::string>& label_columns,
                           const std::string& file_name) {
  return CsvParser(label_columns, file_name).parse(text);
}

Result<CsvTable> read_csv(const std::filesystem::path& file, const std::vector<std::string>& label_columns) {
  auto text = read_file(file, max_csv_bytes);
  if (!text) return fail(ErrorCode::data, text.error().message, file.string(), text.error().hint);
  return parse_csv(*text, label_columns, file.string());
}

}  // namespace accrue
