// SPDX-License-Identifier: Apache-2.0
#include "mlflow_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "log_text.h"
#include "scalar_rows.h"
#include "text_table.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

struct MetricLine {
  double milliseconds = 0.0;
  double value = 0.0;
  std::int64_t step = 0;
};

std::optional<MetricLine> metric_line(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string when, value, step, more;
  if (!(words >> when >> value >> step) || words >> more) return std::nullopt;
  const auto time = number_of(when), number = number_of(value), position = number_of(step);
  const auto whole = position ? step_of(*position) : std::nullopt;
  if (!time || !number || !whole || !step_of(*time)) return std::nullopt;
  return MetricLine{*time, *number, *whole};
}

}  // namespace

bool looks_like_mlflow_metric(std::string_view text) {
  return metric_line(take_line(text).text).has_value();
}

Result<void> read_mlflow_metric(std::string_view text, const std::string& file_name, const std::string& metric,
                                RunLog& log) {
  ScalarRows rows;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const TextLine line = take_line(text);
    if (line.text.empty()) continue;
    const auto point = metric_line(line.text);
    if (!point && !line.whole) {
      log.problems.push_back(fmt::format("{}:{}: the last line is cut short, and is not read", file_name, number));
      break;
    }
    if (!point)
      return fail(ErrorCode::config, "is no line of a metric of MLflow", fmt::format("{}:{}", file_name, number),
                  "It holds the time in milliseconds, the value and the step.");
    rows.add(metric, {.step = point->step, .seconds = point->milliseconds / 1000.0}, point->value);
  }
  log.scalars.merge(rows.log(0.0, {}).scalars);
  return {};
}

fs::path mlflow_metrics_in(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder / "metrics", error) && fs::exists(folder / "meta.yaml", error)) return folder / "metrics";
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();
  if (named.filename() != "metrics") return {};
  // TensorFlow's own guide uses this name for a folder of event files.
  for (const auto& entry : fs::directory_iterator(named, error))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) return {};
  return named;
}

}  // namespace accrue
