// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/csv_runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "accrue/run/counted.h"
#include "lower_case.h"
#include "posix_file.h"

namespace accrue {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{256} << 20;
constexpr std::size_t most_columns = 10'000;
constexpr std::size_t most_listed = 12;
constexpr std::int64_t asked_every = 4096;

constexpr std::string_view step_names[] = {"update", "step", "global_step", "iteration", "iter", "updates", "steps"};
constexpr std::string_view time_names[] = {"seconds", "time",    "wall_time", "wall time", "timestamp",
                                           "elapsed", "runtime", "_runtime",  "_timestamp"};
constexpr std::string_view sample_names[] = {"samples", "sample", "consumed_samples", "consumed-samples"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Of a field; not finite ones, too.
std::optional<double> number_of(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_out_of_range(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0.0;
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc::result_out_of_range;
}

std::optional<std::int64_t> whole_number_of(std::string_view text) {
  constexpr double largest = 9e15;  // up to here every whole number is a double
  const auto number = number_of(text);
  if (!number || !(*number >= 0.0 && *number <= largest) || *number != std::trunc(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// The rows of a file, field by field.
class CsvRows {
 public:
  CsvRows(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  /// The next row that is not blank; false at the end.
  Result<bool> next(std::vector<std::string>& fields) {
    while (!text_.empty()) {
      row_line_ = line_;
      fields.clear();
      if (auto taken = take_row(fields); !taken) return tl::unexpected(taken.error());
      if (fields.size() > 1 || !fields.front().empty()) return true;
    }
    return false;
  }

  /// "file:12: column 3"; without a column "file:12".
  std::string place(std::optional<std::size_t> column = {}) const {
    return fmt::format("{}:{}{}", file_, row_line_, column ? fmt::format(": column {}", *column + 1) : "");
  }

 private:
  Result<void> take_row(std::vector<std::string>& fields) {
    while (true) {
      if (fields.size() == most_columns)
        return fail(ErrorCode::config, fmt::format("the row has more than {} columns", most_columns), place(),
                    "Leave out the columns that are no curves.");
      if (text_.starts_with('"')) {
        auto field = take_quoted(fields.size());
        if (!field) return tl::unexpected(field.error());
        fields.push_back(std::move(*field));
      } else {
        const std::string_view field = text_.substr(0, text_.find_first_of(",\r\n"));
        text_.remove_prefix(field.size());
        fields.emplace_back(trimmed(field));
      }
      if (text_.starts_with(',')) {
        text_.remove_prefix(1);
        continue;
      }
      if (text_.empty()) return {};
      if (!text_.starts_with('\r') && !text_.starts_with('\n'))
        return fail(ErrorCode::config, "the field goes on behind its closing quote", place(fields.size() - 1),
                    "Put a comma between two fields, and write a quote in a quoted field twice.");
      text_.remove_prefix(text_.starts_with("\r\n") ? 2 : 1);
      ++line_;
      return {};
    }
  }

  Result<std::string> take_quoted(std::size_t column) {
    std::string field;
    text_.remove_prefix(1);
    while (true) {
      const auto quote = text_.find('"');
      if (quote == std::string_view::npos)
        return fail(ErrorCode::config, "a quote is opened here and never closed", place(column));
      line_ += std::ranges::count(text_.substr(0, quote), '\n');
      field.append(text_.substr(0, quote));
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('"')) return field;
      field += '"';
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
};

/// What a point is logged at.
struct At {
  std::int64_t step = 0;
  std::optional<double> seconds;
  std::optional<std::int64_t> samples;
};

/// Collects the scalars of one run; a step that is told twice holds what was said later.
class Collected {
 public:
  void add(const std::string& tag, const At& at, double value) {
    points_[tag].push_back({at.step, at.seconds.value_or(0.0), value});
    if (at.samples) samples_[tag].push_back({*at.samples, at.seconds.value_or(0.0), value});
    timed_ = timed_ || at.seconds.has_value();
  }

  /// Times that begin near 0 count from `written`.
  TensorboardLog log(double written) {
    TensorboardLog log{.word = "column"};
    double first = 0.0;
    for (const auto& [tag, values] : points_) first = std::max(first, values.front().wall_time);
    constexpr double a_year = 3.2e7;
    const double origin = first < a_year ? written : 0.0;
    for (auto& [tag, values] : points_) {
      const auto samples = samples_.find(tag);
      const bool counted = samples != samples_.end() && samples->second.size() == values.size();
      log.scalars.emplace(tag, settled(std::span(values), std::span(values), origin));
      if (counted) log.scalars.emplace(tag + " vs samples", settled(std::span(values), samples->second, origin));
    }
    return log;
  }
  bool timed() const { return timed_; }
  bool empty() const { return points_.empty(); }

 private:
  /// `shown` in the order of `steps`, of equal steps the last one.
  static std::vector<LoggedScalar> settled(std::span<const LoggedScalar> steps, std::span<const LoggedScalar> shown,
                                           double origin) {
    std::vector<std::size_t> order(steps.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i].step; });
    std::vector<LoggedScalar> kept;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + 1 < order.size() && steps[order[i + 1]].step == steps[order[i]].step) continue;
      kept.push_back(shown[order[i]]);
      kept.back().wall_time += origin;
    }
    return kept;
  }

  std::map<std::string, std::vector<LoggedScalar>> points_;
  std::map<std::string, std::vector<LoggedScalar>> samples_;  ///< the same, with the samples as their step
  bool timed_ = false;
};

class CsvRunParser {
 public:
  CsvRunParser(std::string_view text, const std::string& file, double seconds, const std::function<bool()>& go_on)
      : rows_(text, file), file_(file), seconds_(seconds), go_on_(go_on) {}

  Result<std::vector<CsvRun>> parse() {
    const auto more = rows_.next(header_);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return fail(ErrorCode::config, "is empty", file_);
    if (auto read = read_header(); !read) return tl::unexpected(read.error());
    std::vector<std::string> fields;
    for (std::int64_t row = 1;; ++row) {
      const auto taken = rows_.next(fields);
      if (!taken) return tl::unexpected(taken.error());
      if (!*taken) break;
      if (go_on_ && row % asked_every == 0 && !go_on_()) return fail(ErrorCode::cancelled, "the import was given up");
      if (fields.size() != header_.size())
        return fail(ErrorCode::config,
                    fmt::format("the row has {} where the header line has {}",
                                counted(static_cast<std::int64_t>(fields.size()), "field"), header_.size()),
                    rows_.place(), "Give every row a field for each column; an empty one is a value that is missing.");
      if (auto added = metric_ ? take_point(fields) : take_row(fields); !added) return tl::unexpected(added.error());
    }
    return runs();
  }

 private:
  std::optional<std::size_t> column_of(std::span<const std::string_view> names) const {
    for (const std::string_view name : names)
      for (std::size_t i = 0; i < header_.size(); ++i)
        if (lowered(header_[i]) == name) return i;
    return std::nullopt;
  }
  std::optional<std::size_t> column_of(std::string_view name) const { return column_of(std::span(&name, 1)); }

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
    step_ = column_of(step_names);
    time_ = column_of(time_names);
    samples_ = column_of(sample_names);
    run_id_ = column_of("run_id");
    run_name_ = column_of("run");
    value_ = column_of("value");
    metric_ = column_of("metric");
    if (!run_id_ || !value_) metric_.reset();  // not what the studio writes
    if (step_) return {};
    std::string names;
    for (std::size_t i = 0; i < std::min(header_.size(), most_listed); ++i) names += (i == 0 ? "" : ", ") + header_[i];
    if (header_.size() > most_listed) names += fmt::format(" and {} more", header_.size() - most_listed);
    return fail(ErrorCode::config, "no column says the step", rows_.place(),
                "Name one of them update, step or iteration; there are: " + names + ".");
  }

  Result<At> at_of(const std::vector<std::string>& fields) const {
    const auto step = whole_number_of(fields[*step_]);
    if (!step)
      return fail(ErrorCode::config, "\"" + fields[*step_].substr(0, 40) + "\" is no step", rows_.place(*step_),
                  "A step is a whole number from 0 to 9e15.");
    At at{.step = *step};
    if (time_)
      if (const auto seconds = number_of(fields[*time_]); seconds && std::isfinite(*seconds)) at.seconds = *seconds;
    if (samples_) at.samples = whole_number_of(fields[*samples_]);
    return at;
  }

  /// A row of a table.
  Result<void> take_row(const std::vector<std::string>& fields) {
    const auto at = at_of(fields);
    if (!at) return tl::unexpected(at.error());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i == *step_ || i == time_ || i == samples_ || header_[i].empty() || fields[i].empty()) continue;
      if (const auto value = number_of(fields[i]))
        part_of_run({}).collected.add(header_[i], *at, *value);
      else
        part_of_run({}).no.try_emplace(header_[i], no_number(fields, i));
    }
    return {};
  }

  /// A row of what the studio writes: one point. Learning rates and micro-losses lie between updates, too; those points
  /// no table has room for.
  Result<void> take_point(const std::vector<std::string>& fields) {
    const std::string& metric = fields[*metric_];
    const auto step = number_of(fields[*step_]);
    if (metric != "loss" && step && *step != std::trunc(*step)) return {};
    const auto at = at_of(fields);
    if (!at) return tl::unexpected(at.error());
    const auto value = number_of(fields[*value_]);
    if (!value) return tl::unexpected(no_number(fields, *value_));
    Part& part = part_of_run(fields[*run_id_]);
    if (run_name_) part.name = fields[*run_name_];
    part.collected.add(metric, *at, *value);
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
    Collected collected;
    std::map<std::string, Error> no;
  };
  Part& part_of_run(const std::string& id) {
    if (!parts_.empty() && parts_[last_].id == id) return parts_[last_];
    const auto [found, is_new] = places_.try_emplace(id, parts_.size());
    if (is_new) parts_.push_back({.id = id});
    last_ = found->second;
    return parts_[last_];
  }

  Result<std::vector<CsvRun>> runs() {
    std::vector<CsvRun> runs;
    for (Part& part : parts_) {
      if (part.collected.empty()) continue;
      CsvRun run{.id = std::move(part.id), .log = part.collected.log(seconds_), .no = std::move(part.no)};
      run.log.name = std::move(part.name);
      if (!part.collected.timed()) run.log.problems.push_back(file_ + ": no column says the time");
      runs.push_back(std::move(run));
    }
    if (runs.empty()) return fail(ErrorCode::config, "holds no row of numbers", file_);
    return runs;
  }

  CsvRows rows_;
  const std::string& file_;
  double seconds_;
  const std::function<bool()>& go_on_;
  std::vector<std::string> header_;
  std::optional<std::size_t> step_, time_, samples_;
  std::optional<std::size_t> run_id_, run_name_, metric_, value_;  ///< of what the studio writes
  std::vector<Part> parts_;
  std::map<std::string, std::size_t> places_;  ///< of a run's part, by its id
  std::size_t last_ = 0;
};

}  // namespace

Result<std::vector<CsvRun>> parse_csv_runs(std::string_view text, const std::string& file_name, double seconds,
                                           const std::function<bool()>& go_on) {
  return CsvRunParser(text, file_name, seconds, go_on).parse();
}

Result<std::vector<CsvRun>> read_csv_runs(const std::filesystem::path& file, const std::function<bool()>& go_on) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0)
    return fail(ErrorCode::config, "does not exist", file.string(), "Check the path");
  const auto text = read_file(file, max_file_bytes);
  if (!text) return tl::unexpected(text.error());
  return parse_csv_runs(*text, file.string(), static_cast<double>(facts.st_mtime), go_on);
}

namespace {

/// What of a run becomes what. A column that cannot be a scalar is known by its name: to be chosen, which is an error,
/// or named as not imported.
Result<ImportChoice> chosen_of(CsvRun& run, const ImportTags& given) {
  for (const auto& [column, error] : run.no) run.log.scalars.try_emplace(column);
  auto choice = choose_tags(run.log, given);
  if (!choice) return choice;
  const ImportTags& tags = choice->tags;
  for (const std::string* chosen : {&tags.loss, &tags.lr, &tags.grad_norm, &tags.evaluation})
    if (const auto bad = run.no.find(*chosen); bad != run.no.end()) return tl::unexpected(bad->second);
  return choice;
}

}  // namespace

Result<ImportChoice> import_csv(CsvRun run, const std::filesystem::path& from, const std::filesystem::path& run_dir,
                                const ImportTags& given) {
  const auto choice = chosen_of(run, given);
  return choice ? import_tensorboard(run.log, from, run_dir, choice->tags) : choice;
}

Result<std::vector<ImportedCurves>> import_csv_runs(std::vector<CsvRun> runs, const std::filesystem::path& from,
                                                    const std::function<std::filesystem::path()>& place,
                                                    const ImportTags& given, const std::function<bool()>& go_on) {
  std::vector<ImportTags> tags;
  for (CsvRun& run : runs) {
    auto choice = chosen_of(run, given);
    if (!choice && runs.size() > 1) choice.error().message = fmt::format("run {}: {}", run.id, choice.error().message);
    if (!choice) return tl::unexpected(choice.error());
    tags.push_back(choice->tags);
  }
  std::vector<ImportedCurves> imported;
  std::error_code ignored;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::filesystem::path dir = place();
    const bool was_there = std::filesystem::exists(dir, ignored);
    auto choice = go_on && !go_on() ? Result<ImportChoice>(fail(ErrorCode::cancelled, "the import was given up"))
                                    : import_tensorboard(runs[i].log, from, dir, tags[i]);
    if (choice) {
      imported.push_back({dir, std::move(*choice), std::move(runs[i].log.problems)});
      continue;
    }
    if (!was_there) std::filesystem::remove_all(dir, ignored);
    for (const ImportedCurves& each : imported) std::filesystem::remove_all(each.dir, ignored);
    return tl::unexpected(choice.error());
  }
  return imported;
}

}  // namespace accrue
