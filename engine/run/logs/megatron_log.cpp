// SPDX-License-Identifier: Apache-2.0
#include "megatron_log.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "log_text.h"
#include "scalar_rows.h"
#include "text_table.h"
#include "trimmed.h"

namespace accrue {

namespace {

/// A line of numbers: the iteration, and the text after its first bar.
struct Printed {
  std::int64_t iteration = 0;
  bool validation = false;
  std::string_view values;
};

std::optional<Printed> printed_in(std::string_view line) {
  constexpr std::string_view trained = "iteration ", validated = "validation loss at iteration ";
  const auto bar = line.find('|');
  const std::string_view head = line.substr(0, bar);
  const auto validation = head.find(validated);
  const auto training = head.find(trained);
  if (bar == std::string_view::npos || training == std::string_view::npos) return std::nullopt;
  // After the last iteration the same is printed for the test set.
  if (validation != std::string_view::npos && head.find("on test set") != std::string_view::npos) return std::nullopt;
  Printed printed{.validation = validation != std::string_view::npos, .values = line.substr(bar + 1)};
  const std::string_view number =
      trimmed(head.substr(printed.validation ? validation + validated.size() : training + trained.size()));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), printed.iteration);
  if (error != std::errc() || printed.iteration < 0) return std::nullopt;
  const bool counted = end != number.data() + number.size() && *end == '/';
  return counted || printed.validation ? std::optional(printed) : std::nullopt;
}

/// Parses "name: value | name: value |". A part without an end was cut.
template <typename Take>
void each_value(std::string_view values, const Take& take) {
  for (auto bar = values.find('|'); bar != std::string_view::npos; bar = values.find('|')) {
    const std::string_view part = values.substr(0, bar);
    values.remove_prefix(bar + 1);
    const auto colon = part.rfind(':');
    if (colon == std::string_view::npos) continue;
    if (const auto number = number_of(trimmed(part.substr(colon + 1)))) take(trimmed(part.substr(0, colon)), *number);
  }
}

}  // namespace

bool looks_like_megatron_log(std::string_view text) {
  while (!text.empty())
    if (printed_in(take_line(text).text)) return true;
  return false;
}

Result<RunLog> parse_megatron_log(std::string_view text, const std::string& file_name, double seconds,
                                  const std::function<bool()>& go_on) {
  ScalarRows rows;
  std::int64_t last = -1;
  std::int64_t interval = 1;  ///< iterations between two lines; unchanged after a restart
  double elapsed = 0.0;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    if (is_given_up(go_on, number)) return given_up();
    const auto printed = printed_in(take_line(text).text);
    if (!printed) continue;
    LogPlace at{.step = printed->iteration};
    if (printed->validation) {
      constexpr std::string_view of_value = " value";
      each_value(printed->values, [&](std::string_view name, double value) {
        if (name.ends_with(of_value))
          rows.add(std::string(name.substr(0, name.size() - of_value.size())) + " validation", at, value);
      });
      continue;
    }
    if (at.step <= last) rows.restart_at(at.step);
    if (at.step > last) interval = at.step - std::max<std::int64_t>(last, 0);
    each_value(printed->values, [&](std::string_view name, double value) {
      if (name == "consumed samples") at.samples = step_of(value);
      if (name == "elapsed time per iteration (ms)")
        at.seconds = elapsed += value / 1000.0 * static_cast<double>(std::max<std::int64_t>(interval, 1));
    });
    last = at.step;
    each_value(printed->values, [&](std::string_view name, double value) {
      if (name != "consumed samples" && !name.starts_with("elapsed time")) rows.add(std::string(name), at, value);
    });
  }
  if (rows.empty()) return fail(ErrorCode::config, "holds no value that Megatron-LM printed", file_name);
  RunLog log = rows.log(seconds, "name");
  if (!rows.timed()) log.problems.push_back(file_name + ": no line says the time");
  return log;
}

}  // namespace accrue
