// SPDX-License-Identifier: Apache-2.0
#include "table_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "accrue/run/base/counted.h"
#include "log_text.h"
#include "lower_case.h"
#include "scalar_rows.h"
#include "text_table.h"

namespace accrue {

namespace {

constexpr std::size_t most_columns = 10'000;

/// For a chart of W&B: run and quantity of a column.
struct ChartColumn {
  std::string run;
  std::string name;
};

/// Whether commas in the table's numbers are decimal commas.
bool has_decimal_commas(std::string_view text, const std::string& file, const std::function<bool()>& go_on) {
  TableRows rows(text, file, most_columns);
  if (rows.separator() == ',' && text.find('"') == std::string_view::npos) return false;
  bool commas = false;
  std::vector<std::string> fields;
  for (std::int64_t row = 1; rows.next(fields).value_or(false) && !is_given_up(go_on, row); ++row)
    for (const std::string& field : fields) {
      if (field.find('.') != std::string::npos && number_of(field)) return false;
      commas = commas || with_decimal_point(field).has_value();
    }
  return commas;
}

class TableLogParser {
 public:
  TableLogParser(std::string_view text, const std::string& file, double seconds, const LogRequest& request)
      : text_(text), rows_(text, file, most_columns), file_(file), seconds_(seconds), request_(request) {}

  Result<std::vector<RunLog>> parse() {
    const auto more = rows_.next(header_);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return fail(ErrorCode::config, "is empty", file_);
    if (auto read = read_header(); !read) return tl::unexpected(read.error());
    decimal_commas_ = has_decimal_commas(text_, file_, request_.go_on);
    std::vector<std::string> fields;
    for (std::int64_t row = 1;; ++row) {
      const auto taken = rows_.next(fields);
      if (taken && !*taken) break;
      if (is_given_up(request_.go_on, row)) return given_up();
      if (rows_.may_be_cut() && (!taken || is_cut(fields))) {
        problems_.push_back(rows_.place() + ": the last row is cut short, and is not read");
        break;
      }
      if (!taken) return tl::unexpected(taken.error());
      if (fields.size() != header_.size())
        return fail(ErrorCode::config,
                    fmt::format("the row has {} where the header line has {}",
                                counted(static_cast<std::int64_t>(fields.size()), "field"), header_.size()),
                    rows_.place(), "Give every row a field for each column; an empty one is a value that is missing.");
      if (auto added = metric_ ? take_point(fields) : take_row(fields); !added) return tl::unexpected(added.error());
    }
    return logs();
  }

 private:
  std::optional<std::size_t> column_of(std::string_view name) const {
    const auto found = std::ranges::find(header_, name, [](const std::string& each) { return lowered(each); });
    return found == header_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - header_.begin()));
  }

  Result<void> read_header() {
    const bool numbers = std::ranges::all_of(
        header_, [](const std::string& field) { return field.empty() || number_of(field).has_value(); });
    if (numbers)
      return fail(ErrorCode::config, "there is no header line", rows_.place(),
                  "The first line has to name the columns: step,loss,lr");
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < header_.size(); ++i)
      if (!header_[i].empty() && !seen.insert(header_[i]).second)
        return fail(ErrorCode::config, "the column \"" + header_[i] + "\" is there twice", rows_.place(i),
                    "Give each column a name of its own.");
    run_id_ = column_of("run_id");
    run_name_ = column_of("run");
    value_ = column_of("value");
    metric_ = column_of("metric");
    if (!run_id_ || !value_) metric_.reset();  // not an export of the studio
    read_chart(seen);
    auto at = place_columns(header_, request_, "column");
    if (!at) {
      at.error().where = rows_.place();
      return tl::unexpected(at.error());
    }
    at_ = *at;
    if (at_.epochs) problems_.push_back(file_ + ": a step is an epoch");
    return {};
  }

  /// "NAME - train/loss" is a run's column if NAME - train/loss__MIN and __MAX are beside it, which are ignored.
  void read_chart(const std::set<std::string_view>& seen) {
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const std::string& column = header_[i];
      const auto split = column.rfind(" - ");
      if (split == std::string::npos || !seen.contains(column + "__MIN") || !seen.contains(column + "__MAX")) continue;
      chart_.resize(header_.size());
      chart_[i] = {column.substr(0, split), column.substr(split + 3)};
    }
  }

  /// Whether the newest row was cut by a killed writer: too few fields, or a number that ends in the middle.
  bool is_cut(const std::vector<std::string>& fields) const {
    if (fields.size() < header_.size()) return true;
    const std::string& last = fields.back();
    return fields.size() == header_.size() && last_was_number_ && !last.empty() && !number_in(last);
  }

  std::optional<double> number_in(const std::string& field) const {
    if (const auto number = number_of(field)) return number;
    const auto pointed = decimal_commas_ ? with_decimal_point(field) : std::nullopt;
    return pointed ? number_of(*pointed) : std::nullopt;
  }

  /// None if the field is empty.
  Result<std::optional<LogPlace>> place_of(const std::vector<std::string>& fields) {
    const std::string& field = fields[at_.step];
    if (field.empty()) {
      ++without_step_;
      return std::nullopt;
    }
    const auto number = number_in(field);
    const auto step = number ? step_of(*number) : std::nullopt;
    if (!step)
      return fail(ErrorCode::config, "\"" + field.substr(0, 40) + "\" is no step", rows_.place(at_.step),
                  "A step is a whole number from 0 to 9e15.");
    LogPlace at{.step = *step};
    if (at_.time)
      if (const auto seconds = number_in(fields[*at_.time]); seconds && std::isfinite(*seconds)) at.seconds = seconds;
    if (at_.samples)
      if (const auto samples = number_in(fields[*at_.samples])) at.samples = step_of(*samples);
    return at;
  }

  /// Takes a row of a table.
  Result<void> take_row(const std::vector<std::string>& fields) {
    const auto at = place_of(fields);
    if (!at) return tl::unexpected(at.error());
    if (!*at) return {};
    last_was_number_ = number_in(fields.back()).has_value();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i == at_.step || i == at_.time || i == at_.samples || header_[i].empty() || fields[i].empty()) continue;
      if (!chart_.empty() && chart_[i].name.empty()) continue;
      Part& part = part_of_run(chart_.empty() ? std::string() : chart_[i].run);
      const std::string& name = chart_.empty() ? header_[i] : chart_[i].name;
      if (const auto value = number_in(fields[i]))
        part.rows.add(name, **at, *value);
      else
        part.no_numbers.try_emplace(name, no_number(fields, i));
    }
    return {};
  }

  /// Takes a row of the studio's export: one point. Learning rates and micro-losses also have points between updates,
  /// for which a record has no place.
  Result<void> take_point(const std::vector<std::string>& fields) {
    if (fields[*value_].empty()) return {};
    const std::string& metric = fields[*metric_];
    const auto step = number_in(fields[at_.step]);
    if (metric != "loss" && step && *step != std::trunc(*step)) return {};
    const auto at = place_of(fields);
    if (!at) return tl::unexpected(at.error());
    if (!*at) return {};
    const auto value = number_in(fields[*value_]);
    if (!value) return tl::unexpected(no_number(fields, *value_));
    Part& part = part_of_run(fields[*run_id_]);
    if (run_name_) part.name = fields[*run_name_];
    part.rows.add(metric, **at, *value);
    return {};
  }

  Error no_number(const std::vector<std::string>& fields, std::size_t column) const {
    if (is_out_of_range(fields[column]))
      return {ErrorCode::config, "\"" + fields[column].substr(0, 40) + "\" is out of the range of numbers",
              rows_.place(column), "The largest is 1.8e308, the smallest 4.9e-324."};
    return {ErrorCode::config, "\"" + fields[column].substr(0, 40) + "\" is no number", rows_.place(column),
            "Leave a field empty where nothing was logged."};
  }

  struct Part {
    std::string id;
    std::string name;
    ScalarRows rows;
    std::map<std::string, Error> no_numbers;
  };
  Part& part_of_run(const std::string& id) {
    if (!parts_.empty() && parts_[last_].id == id) return parts_[last_];
    const auto [found, is_new] = places_.try_emplace(id, parts_.size());
    if (is_new) parts_.push_back({.id = id, .name = chart_.empty() ? std::string() : id});
    last_ = found->second;
    return parts_[last_];
  }

  Result<std::vector<RunLog>> logs() {
    if (without_step_ > 0)
      problems_.push_back(fmt::format("{}: {} without a step left out", file_, counted(without_step_, "row")));
    std::vector<RunLog> logs;
    for (Part& part : parts_) {
      if (part.rows.empty()) continue;
      RunLog log = part.rows.log(seconds_, "column");
      log.id = std::move(part.id);
      log.name = std::move(part.name);
      log.no_numbers = std::move(part.no_numbers);
      log.problems = problems_;
      if (!part.rows.timed()) log.problems.push_back(file_ + ": no column says the time");
      logs.push_back(std::move(log));
    }
    if (logs.empty()) return fail(ErrorCode::config, "holds no row of numbers", file_);
    return logs;
  }

  std::string_view text_;
  TableRows rows_;
  const std::string& file_;
  double seconds_;
  const LogRequest& request_;
  std::vector<std::string> header_;
  PlaceColumns at_;
  std::optional<std::size_t> run_id_, run_name_, metric_, value_;  ///< of the studio's export
  std::vector<ChartColumn> chart_;                                 ///< by column; empty: not a chart
  bool decimal_commas_ = false;
  bool last_was_number_ = false;  ///< in the last column of the previous row
  std::int64_t without_step_ = 0;
  std::vector<std::string> problems_;
  std::vector<Part> parts_;
  std::map<std::string, std::size_t> places_;  ///< of a run's part, by id
  std::size_t last_ = 0;
};

}  // namespace

Result<std::vector<RunLog>> parse_table_log(std::string_view text, const std::string& file_name, double seconds,
                                            const LogRequest& request) {
  return TableLogParser(text, file_name, seconds, request).parse();
}

bool looks_like_table(std::string_view text) {
  const std::string unnamed;
  TableRows rows(text, unnamed, most_columns);
  std::vector<std::string> header, fields;
  if (!rows.next(header).value_or(false) || header.size() < 2) return false;
  const auto more = rows.next(fields);
  return !more || !*more || fields.size() == header.size() || rows.may_be_cut();
}

}  // namespace accrue
