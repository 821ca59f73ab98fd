// SPDX-License-Identifier: Apache-2.0
#include "scalar_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "lower_case.h"

namespace accrue {

namespace {

constexpr std::string_view step_names[] = {"update", "step", "global_step", "iteration", "iter", "updates", "steps"};
constexpr std::string_view step_ends[] = {"/global_step", "/step", "/iteration", "/iter"};
constexpr std::string_view call_names[] = {"_step"};  // counts log calls, not training steps
constexpr std::string_view epoch_names[] = {"epoch", "epochs"};
constexpr std::string_view time_names[] = {"seconds",    "time",    "wall_time", "wall time", "timestamp",
                                           "_timestamp", "elapsed", "runtime",   "_runtime"};
constexpr std::string_view sample_names[] = {"samples", "sample", "consumed_samples", "consumed-samples"};

std::optional<std::size_t> find_name(const std::vector<std::string>& names, std::span<const std::string_view> wanted) {
  for (const std::string_view want : wanted)
    for (std::size_t i = 0; i < names.size(); ++i)
      if (lowered(names[i]) == want) return i;
  return std::nullopt;
}

std::optional<std::size_t> find_end(const std::vector<std::string>& names, std::span<const std::string_view> ends) {
  for (const std::string_view end : ends)
    for (std::size_t i = 0; i < names.size(); ++i)
      if (lowered(names[i]).ends_with(end)) return i;
  return std::nullopt;
}

}  // namespace

std::string name_list(const std::vector<std::string>& names) {
  constexpr std::size_t most_listed = 12;
  return joined_up_to(most_listed, names);
}

Result<PlaceColumns> place_columns(const std::vector<std::string>& names, const LogRequest& request,
                                   const std::string& word) {
  PlaceColumns columns;
  std::optional<std::size_t> step;
  if (!request.step.empty()) {
    const auto named = std::ranges::find(names, request.step);
    if (named == names.end())
      return fail(ErrorCode::config, fmt::format("there is no {} \"{}\"", word, request.step), {},
                  "There are: " + name_list(names) + ".");
    step = static_cast<std::size_t>(named - names.begin());
  }
  if (!step) step = find_name(names, step_names);
  if (!step) step = find_end(names, step_ends);
  if (!step) step = find_name(names, call_names);
  if (!step) {
    step = find_name(names, epoch_names);
    columns.epochs = step.has_value();
  }
  if (!step && request.step_names != nullptr) *request.step_names = names;
  if (!step)
    return fail(
        ErrorCode::config, fmt::format("no {} says the step", word), {},
        fmt::format("Name one of them update, step or iteration, or give accrue-run import --step; there are: {}.",
                    name_list(names)));
  columns.step = *step;
  columns.time = find_name(names, time_names);
  // MMEngine's "time" is the duration of one iteration.
  if (columns.time && lowered(names[*columns.time]) == "time" && std::ranges::find(names, "data_time") != names.end())
    columns.time.reset();
  columns.samples = find_name(names, sample_names);
  return columns;
}

std::optional<std::int64_t> step_of(double number) {
  constexpr double largest = 9e15;  // up to here every integer is exact as a double
  if (!(number >= 0.0 && number <= largest) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

void ScalarRows::add(const std::string& name, const LogPlace& at, double value) {
  points_[name].push_back({at, value});
  timed_ = timed_ || at.seconds.has_value();
}

void ScalarRows::restart_at(std::int64_t step) {
  for (auto& [name, points] : points_)
    std::erase_if(points, [step](const Point& point) { return point.at.step >= step; });
}

RunLog ScalarRows::log(double written, std::string word) const {
  RunLog log;
  log.word = std::move(word);
  double first = 0.0;
  for (const auto& [name, points] : points_)
    if (!points.empty()) first = std::max(first, points.front().at.seconds.value_or(0.0));
  constexpr double a_year = 3.2e7;
  const double origin = first < a_year ? written : 0.0;
  for (const auto& [name, points] : points_) {
    if (points.empty()) continue;
    std::vector<const Point*> order;
    for (const Point& point : points) order.push_back(&point);
    std::ranges::stable_sort(order, {}, [](const Point* point) { return point->at.step; });
    const bool counted = std::ranges::all_of(points, [](const Point& point) { return point.at.samples.has_value(); });
    auto& steps = log.scalars[name];
    std::vector<LoggedScalar> samples;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + 1 < order.size() && order[i + 1]->at.step == order[i]->at.step) continue;
      const LogPlace& at = order[i]->at;
      steps.push_back({at.step, at.seconds.value_or(0.0) + origin, order[i]->value});
      if (counted) samples.push_back({*at.samples, steps.back().wall_time, order[i]->value});
    }
    if (counted) log.scalars[name + std::string(samples_twin)] = std::move(samples);
  }
  return log;
}

}  // namespace accrue
