// SPDX-License-Identifier: Apache-2.0
#include "json_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "accrue/run/base/counted.h"
#include "json_number.h"
#include "json_text.h"
#include "log_text.h"
#include "scalar_rows.h"
#include "trimmed.h"

namespace accrue {

namespace {

/// Converts Python's names of numbers that JSON lacks to the strings that read_json_number() knows.
std::string with_named_numbers(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"NaN", "\"nan\""}, {"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}};
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!in_string) {
      const auto name =
          std::ranges::find_if(names, [&](const auto& each) { return text.substr(i).starts_with(each.first); });
      if (name != std::end(names)) {
        result += name->second;
        i += name->first.size() - 1;
        continue;
      }
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) result += text[i++];
    result += text[i];
  }
  return result;
}

Json read_json(std::string_view text) {
  const bool plain = text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos;
  return plain ? parse_json(text) : parse_json(with_named_numbers(text));
}

class JsonLogParser {
 public:
  JsonLogParser(const std::string& file, double seconds, const LogRequest& request)
      : file_(file), seconds_(seconds), request_(request) {}

  /// Handles a whole text that is one value; discarded if it is not.
  Result<bool> take_document(std::string_view text) {
    Json json = read_json(text);
    if (json.is_object() && json.contains("log_history")) json = Json(std::move(json["log_history"]));
    if (json.is_object()) return take(std::move(json), file_);  // a file of one line
    if (!json.is_array()) return false;
    for (std::size_t i = 0; i < json.size(); ++i)
      if (auto taken = take(std::move(json[i]), fmt::format("{}: entry {}", file_, i + 1)); !taken) return taken;
    return true;
  }

  Result<void> take_lines(std::string_view text) {
    for (std::int64_t number = 1; !text.empty(); ++number) {
      if (is_given_up(request_.go_on, number)) return given_up();
      const TextLine line = take_line(text);
      if (trimmed(line.text).empty()) continue;
      Json json = read_json(line.text);
      if (json.is_discarded() && !line.whole) {
        problems_.push_back(fmt::format("{}:{}: the last line is cut short, and is not read", file_, number));
        break;
      }
      if (json.is_discarded() && rows_.empty())
        return fail(ErrorCode::config, "is neither a whole JSON value nor an object a line", file_,
                    "It may be cut short: write it again, or give another file.");
      if (auto taken = take(std::move(json), fmt::format("{}:{}", file_, number)); !taken)
        return tl::unexpected(taken.error());
    }
    return {};
  }

  Result<RunLog> log() {
    const std::vector<std::string> keys = distinct_keys();
    if (is_given_up(request_.go_on)) return given_up();
    const auto columns = place_columns(keys, request_, "key");
    if (!columns) return fail(columns.error().code, columns.error().message, file_, columns.error().hint);
    if (columns->epochs) problems_.push_back(file_ + ": a step is an epoch");
    ScalarRows scalars;
    std::int64_t without_step = 0;
    for (std::int64_t number = 1; const Json& row : rows_) {
      if (is_given_up(request_.go_on, number++)) return given_up();
      const auto at = place_of(row, keys, *columns);
      without_step += !at;
      if (!at) continue;
      for (const auto& [key, value] : row.items())
        if (const auto number = read_json_number(value);
            number && key != keys[columns->step] && !is_place(key, keys, *columns))
          scalars.add(key, *at, *number);
    }
    if (scalars.empty()) return fail(ErrorCode::config, "holds no number at a step", file_);
    if (without_step > 0)
      problems_.push_back(fmt::format("{}: {} without a step left out", file_, counted(without_step, "entry")));
    RunLog log = scalars.log(seconds_, "key");
    log.problems = std::move(problems_);
    if (!scalars.timed()) log.problems.push_back(file_ + ": no key says the time");
    return log;
  }

 private:
  static constexpr std::size_t most_keys = 10'000;

  Result<bool> take(Json row, const std::string& place) {
    if (!row.is_object())
      return fail(ErrorCode::config, "is no JSON object", place,
                  "A log in JSON has an object of names and numbers a line.");
    rows_.push_back(std::move(row));
    return true;
  }

  /// In order of appearance.
  std::vector<std::string> distinct_keys() const {
    std::vector<std::string> keys;
    std::unordered_set<std::string_view> seen;
    for (std::int64_t number = 1; const Json& row : rows_) {
      if (is_given_up(request_.go_on, number++)) break;
      for (const auto& member : row.items())
        if (keys.size() < most_keys && seen.insert(member.key()).second) keys.push_back(member.key());
    }
    return keys;
  }

  static bool is_place(const std::string& key, const std::vector<std::string>& keys, const PlaceColumns& columns) {
    return (columns.time && key == keys[*columns.time]) || (columns.samples && key == keys[*columns.samples]);
  }

  static std::optional<LogPlace> place_of(const Json& row, const std::vector<std::string>& keys,
                                          const PlaceColumns& columns) {
    const auto number_at = [&](std::optional<std::size_t> column) -> std::optional<double> {
      const auto member = column ? row.find(keys[*column]) : row.end();
      return member == row.end() ? std::nullopt : read_json_number(*member);
    };
    const auto number = number_at(columns.step);
    const auto step = number ? step_of(*number) : std::nullopt;
    if (!step) return std::nullopt;
    LogPlace at{.step = *step};
    if (const auto seconds = number_at(columns.time); seconds && std::isfinite(*seconds)) at.seconds = seconds;
    if (const auto samples = number_at(columns.samples)) at.samples = step_of(*samples);
    return at;
  }

  const std::string& file_;
  double seconds_;
  const LogRequest& request_;
  std::vector<Json> rows_;
  std::vector<std::string> problems_;
};

}  // namespace

bool looks_like_json(std::string_view text) {
  text = trimmed(text);
  // A bracket alone may begin the time of a printed line.
  if (text.starts_with('[')) text = trimmed(text.substr(1));
  return text.starts_with('{');
}

Result<RunLog> parse_json_log(std::string_view text, const std::string& file_name, double seconds,
                              const LogRequest& request) {
  JsonLogParser parser(file_name, seconds, request);
  const auto whole = parser.take_document(text);
  if (!whole) return tl::unexpected(whole.error());
  if (!*whole)
    if (auto taken = parser.take_lines(text); !taken) return tl::unexpected(taken.error());
  return parser.log();
}

}  // namespace accrue
