// SPDX-License-Identifier: Apache-2.0
// One pass over the text. The whole table is in memory, in doubles: CSV is for data that people look at; larger sets
// are token files.
#include "accrue/run/facts/csv_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "accrue/run/base/counted.h"
#include "foreign_file.h"
#include "posix_file.h"
#include "text_table.h"

namespace accrue {

namespace {

constexpr std::size_t max_csv_bytes = std::size_t{1} << 30;
constexpr std::size_t most_columns = 1'000'000;
constexpr const char* a_table = "comma-separated table";

using Cells = std::vector<std::string>;

std::optional<double> finite_number(std::string_view cell) {
  const auto number = number_of(cell);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// Whether a cell is a word, not any kind of number: "nan" and "inf" are numbers that training data must not contain,
/// and an empty cell is a gap.
bool is_word(std::string_view cell) {
  return !cell.empty() && !number_of(cell) && !is_out_of_range(cell);
}

class CsvParser {
 public:
  /// training: the table with the columns and classes for this one, if any.
  CsvParser(std::string_view text, const std::vector<std::string>& labels, const std::string& file,
            const CsvTable* training)
      : text_(text), rows_(text, file, most_columns), labels_(labels), file_(file), training_(training) {}

  Result<CsvTable> parse() {
    if (auto checked = check_is_text(text_.substr(0, file_head_bytes), file_, a_table); !checked)
      return tl::unexpected(checked.error());
    Cells cells;
    while (true) {
      const auto more = rows_.next(cells);
      if (!more) return fail(ErrorCode::data, more.error().message, more.error().where, more.error().hint);
      if (!*more) break;
      if (auto taken = width_ == 0 ? take_first(cells) : take_next(cells); !taken) return tl::unexpected(taken.error());
    }
    if (auto ended = end(); !ended) return tl::unexpected(ended.error());
    return std::move(table_);
  }

 private:
  /// Meaning of the first line.
  enum class First { row, names, unknown };

  bool is_label(std::size_t column) const { return std::ranges::find(label_at_, column) != label_at_.end(); }

  Result<void> take_first(const Cells& cells) {
    width_ = cells.size();
    if (width_ == 1 && is_word(cells[0]))
      return fail(ErrorCode::data, std::string("this is no ") + a_table + ": its first line has no separator",
                  rows_.place(), "Separate the columns by commas, semicolons or tabs.");
    const bool words = std::ranges::any_of(cells, is_word);
    if (words) table_.columns = cells;
    if (auto found = find_labels(); !found) return found;
    bool beside_labels = named_;
    for (std::size_t c = 0; c < width_; ++c) beside_labels |= !is_label(c) && is_word(cells[c]);
    // If only the label is a word, it is a name or a class; the rows below decide.
    first_ = !words ? First::row : beside_labels || label_at_.size() > 1 ? First::names : First::unknown;
    if (first_ == First::names) return {};
    if (first_ == First::row) table_.columns.clear();
    return take_row(cells);
  }

  Result<void> take_next(const Cells& cells) {
    if (cells.size() != width_)
      return fail(ErrorCode::data,
                  "the row has " + counted(static_cast<std::int64_t>(cells.size()), "column") +
                      " where the first has " + std::to_string(width_),
                  rows_.place(), "Give every row the same columns.");
    return take_row(cells);
  }

  Result<void> take_row(const Cells& cells) {
    for (std::size_t c = 0; c < width_; ++c) {
      if (is_label(c)) continue;
      const auto number = number_in(cells, c);
      if (!number) return tl::unexpected(number.error());
      table_.x.push_back(*number);
    }
    for (const std::size_t c : label_at_)
      if (auto taken = take_label(cells, c); !taken) return taken;
    ++table_.rows;
    return {};
  }

  /// The first label of the rows decides whether all are words. If the second is a number, the first line named the
  /// columns.
  Result<void> take_label(const Cells& cells, std::size_t column) {
    const std::string& cell = cells[column];
    if (first_ == First::unknown && table_.rows == 1 && !is_word(cell))
      if (auto dropped = drop_first_line(); !dropped) return dropped;
    if (!in_words_) in_words_ = label_at_.size() == 1 && is_word(cell);
    if (*in_words_) return take_word(cells, column);
    const auto number = number_in(cells, column);
    if (!number) return tl::unexpected(number.error());
    table_.y.push_back(*number);
    return {};
  }

  Result<void> take_word(const Cells& cells, std::size_t column) {
    const std::string& cell = cells[column];
    if (!is_word(cell) || cell == "NA")
      return fail(ErrorCode::data, "\"" + cell.substr(0, 40) + "\" is no class, as the words of the other rows are",
                  rows_.place(column), "Fill it in, or leave the row out.");
    words_.push_back(cell);
    return {};
  }

  Result<void> drop_first_line() {
    if (!name_or_number_.empty())
      return fail(ErrorCode::data, "\"" + name_or_number_ + "\" is the name of one column and the number of another",
                  file_, "Name all columns by words.");
    first_ = First::names;
    words_.clear();
    in_words_.reset();
    table_.x.erase(table_.x.begin(), table_.x.begin() + table_.inputs);
    table_.rows = 0;
    return {};
  }

  Result<double> number_in(const Cells& cells, std::size_t column) const {
    if (const auto number = finite_number(cells[column])) return *number;
    return fail(ErrorCode::data, "\"" + cells[column].substr(0, 40) + "\" is not a finite number", rows_.place(column),
                "A csv file of training data holds numbers only.");
  }

  /// Returns a column's index by its number from 1.
  std::optional<std::size_t> numbered(const std::string& label) const {
    const auto number = finite_number(label);
    const bool inside = number && *number >= 1 && *number <= static_cast<double>(width_);
    if (!inside || *number != std::trunc(*number)) return std::nullopt;
    return static_cast<std::size_t>(*number) - 1;
  }

  /// Whether the first line may be a row, with a word as its label in this column.
  bool may_be_row(const std::optional<std::size_t>& label) const {
    return label && labels_.size() == 1 && is_word(table_.columns[*label]) &&
           std::ranges::count_if(table_.columns, is_word) == 1;
  }

  Result<void> find_labels() {
    if (labels_.empty()) label_at_ = {width_ - 1};
    for (const std::string& label : labels_) {
      const auto named = std::ranges::find(table_.columns, label);
      const auto number = numbered(label);
      const bool by_name = named != table_.columns.end() && !may_be_row(number);
      if (named != table_.columns.end() && !by_name) name_or_number_ = label;
      if (!by_name && !number)
        return fail(ErrorCode::data, "there is no column \"" + label + "\"", file_,
                    "Name columns in data.label_columns as the header line does, or by number from 1.");
      named_ |= by_name;
      const auto at = by_name ? static_cast<std::size_t>(named - table_.columns.begin()) : *number;
      if (!is_label(at)) label_at_.push_back(at);
    }
    if (label_at_.size() >= width_)
      return fail(ErrorCode::data, "no column is left for x", file_, "A table needs inputs beside its labels.");
    table_.outputs = static_cast<std::int64_t>(label_at_.size());
    table_.inputs = static_cast<std::int64_t>(width_) - table_.outputs;
    return {};
  }

  Result<void> end() {
    const auto is_known = [this](const std::string& word) {
      return training_ != nullptr && std::ranges::find(training_->classes, word) != training_->classes.end();
    };
    const bool once = first_ == First::unknown && std::ranges::count(words_, words_.front()) == 1;
    if (once && table_.rows == 1 && !is_known(words_.front()))
      if (auto dropped = drop_first_line(); !dropped) return dropped;
    if (table_.rows == 0) return fail(ErrorCode::data, "the table has no row of numbers", file_);
    if (once && !is_known(words_.front()))
      return fail(ErrorCode::data,
                  "line 1 may name the columns or be a row: \"" + words_.front().substr(0, 40) +
                      "\" is the label of no other row",
                  file_, "Name all columns by words, or leave the row out.");
    if (first_ == First::unknown) table_.columns.clear();
    const std::set<std::string> classes(words_.begin(), words_.end());
    table_.classes.assign(classes.begin(), classes.end());
    for (const std::string& word : words_)
      table_.y.push_back(static_cast<double>(std::distance(classes.begin(), classes.find(word))));
    return {};
  }

  std::string_view text_;
  TableRows rows_;
  const std::vector<std::string>& labels_;
  const std::string& file_;
  const CsvTable* training_;
  CsvTable table_;
  std::vector<std::size_t> label_at_;
  std::optional<bool> in_words_;    ///< the labels are words
  std::vector<std::string> words_;  ///< the words of the rows follow
  bool named_ = false;              ///< a label column was found by name
  std::string name_or_number_;      ///< a label column that was found by number, but could also be a name
  First first_ = First::row;
  std::size_t width_ = 0;
};

Result<CsvTable> read_table(const std::filesystem::path& file, const std::vector<std::string>& label_columns,
                            const CsvTable* training) {
  const auto text = read_file(file, max_csv_bytes);
  if (!text) return fail(ErrorCode::data, text.error().message, file.string(), text.error().hint);
  const std::string name = file.string();
  return CsvParser(*text, label_columns, name, training).parse();
}

/// Appends the rows of a validation table, with the class indices of the training table.
Result<void> append_validation(CsvTable& table, const CsvTable& validation, const std::string& file) {
  const auto refuse = [&](const std::string& what, const std::string& way) {
    return fail(ErrorCode::data, file + ": " + what, "data.validation_path", way);
  };
  if (table.inputs != validation.inputs || table.outputs != validation.outputs)
    return refuse("it has " + counted(validation.inputs + validation.outputs, "column") +
                      " where the training data have " + std::to_string(table.inputs + table.outputs),
                  "Give both files the same columns.");
  if (!table.columns.empty() && !validation.columns.empty() && table.columns != validation.columns)
    return refuse("its header line names other columns than that of the training data",
                  "Give both files the same columns in the same order.");
  if (table.classes.empty() != validation.classes.empty())
    return refuse("the labels of one file are words and those of the other numbers", "Write both in the same way.");
  std::vector<double> labels(validation.y);
  for (double& label : labels) {
    if (table.classes.empty()) break;
    const std::string& name = validation.classes[static_cast<std::size_t>(label)];
    const auto found = std::ranges::find(table.classes, name);
    if (found == table.classes.end())
      return refuse("the class \"" + name.substr(0, 40) + "\" is not in the training data",
                    "Leave its rows out, or train on some.");
    label = static_cast<double>(found - table.classes.begin());
  }
  table.x.insert(table.x.end(), validation.x.begin(), validation.x.end());
  table.y.insert(table.y.end(), labels.begin(), labels.end());
  table.rows += validation.rows;
  table.validation_rows = validation.rows;
  return {};
}

}  // namespace

Result<CsvTable> parse_csv(std::string_view text, const std::vector<std::string>& label_columns,
                           const std::string& file_name) {
  return CsvParser(text, label_columns, file_name, nullptr).parse();
}

Result<CsvTable> read_tables(const std::filesystem::path& file, const std::filesystem::path& validation,
                             const std::vector<std::string>& label_columns) {
  auto table = read_table(file, label_columns, nullptr);
  if (!table || validation.empty()) return table;
  const auto kept = read_table(validation, label_columns, &*table);
  if (!kept)
    return fail(ErrorCode::data, kept.error().where + ": " + kept.error().message, "data.validation_path",
                kept.error().hint);
  if (auto appended = append_validation(*table, *kept, validation.string()); !appended)
    return tl::unexpected(appended.error());
  return table;
}

}  // namespace accrue
