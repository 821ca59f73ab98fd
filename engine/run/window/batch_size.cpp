// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/batch_size.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>

namespace accrue {
namespace {

constexpr std::string_view suffixes = "KMBT";
constexpr std::int64_t largest_threshold = std::int64_t{1} << 53;

/// A whole number that is all of the text.
std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || at != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// The same with one of the suffixes.
std::optional<std::int64_t> threshold(std::string_view text) {
  std::int64_t unit = 1;
  if (const auto suffix = text.empty() ? std::string_view::npos : suffixes.find(text.back());
      suffix != std::string_view::npos) {
    for (std::size_t i = 0; i <= suffix; ++i) unit *= 1000;
    text.remove_suffix(1);
  }
  const auto number = whole_number(text);
  if (!number || *number > largest_threshold / unit) return std::nullopt;
  return *number * unit;
}

/// As a real number.
double samples_per_increment(const RampUp& ramp) {
  return static_cast<double>(ramp.samples) / static_cast<double>((ramp.full - ramp.first) / ramp.increment);
}

std::int64_t increments_after(const RampUp& ramp, std::int64_t samples) {
  return static_cast<std::int64_t>(static_cast<double>(samples) / samples_per_increment(ramp));
}

tl::unexpected<Error> wrong_entry(std::string_view entry, const std::string& what) {
  return fail(ErrorCode::config, "\"" + std::string(entry) + "\" " + what, {},
              "Entries are THRESHOLD:BATCH, the first threshold is 0 and each is above the one before.");
}

}  // namespace

Result<RunningBatch> constant_batch(std::int64_t batch, std::int64_t micro, bool may_be_smaller) {
  const RunningBatch running{batch / micro * micro, batch / micro};
  if (running.micro_steps < 1)
    return fail(ErrorCode::config, "an update of " + std::to_string(batch) +
                                       " samples is smaller than one micro-step of " + std::to_string(micro));
  if (running.samples != batch && !may_be_smaller)
    return fail(ErrorCode::config, "an update of " + std::to_string(batch) +
                                       " samples is not a whole number of micro-steps of " + std::to_string(micro));
  return running;
}

std::string_view ramp_problem(const RampUp& ramp) {
  if (ramp.first < 1 || ramp.increment < 1 || ramp.samples < 1) return "has a number below 1";
  if (ramp.first >= ramp.full) return "starts with the full batch or more";
  if ((ramp.full - ramp.first) % ramp.increment != 0) return "does not come to the full batch in whole increments";
  return {};
}

std::int64_t batch_at(const RampUp& ramp, std::int64_t samples) {
  if (samples > ramp.samples) return ramp.full;
  return ramp.first + increments_after(ramp, samples) * ramp.increment;
}

std::int64_t next_batch_change(const RampUp& ramp, std::int64_t samples) {
  const std::int64_t now = batch_at(ramp, samples);
  if (now == ramp.full) return never_changes;
  const auto next = static_cast<double>(increments_after(ramp, samples) + 1);
  std::int64_t at =
      std::clamp(static_cast<std::int64_t>(next * samples_per_increment(ramp)), samples + 1, ramp.samples + 1);
  while (at > samples + 1 && batch_at(ramp, at - 1) != now) --at;  // as rounded there, not here
  while (batch_at(ramp, at) == now) ++at;
  return at;
}

Result<std::vector<BatchStep>> read_batch_steps(std::string_view text, std::int64_t tokens_per_sample) {
  std::vector<BatchStep> steps;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    if (entry.empty()) continue;
    const auto colon = entry.find(':');
    if (colon == std::string_view::npos) return wrong_entry(entry, "has no colon");
    const auto from = threshold(entry.substr(0, colon));
    const auto batch = whole_number(entry.substr(colon + 1));
    if (!from) return wrong_entry(entry, "does not begin with a number, which may have one of K, M, B and T");
    if (!batch || *batch < 1) return wrong_entry(entry, "does not end with a batch of at least one sample");
    steps.push_back({tokens_per_sample > 0 ? *from / tokens_per_sample : *from, *batch});
    const bool in_order = steps.size() == 1 ? steps[0].from == 0 : steps.back().from > std::prev(steps.end(), 2)->from;
    if (!in_order) return wrong_entry(entry, "is out of order");
  }
  if (steps.empty()) return wrong_entry("", "is no list of steps");
  return steps;
}

std::int64_t batch_at(const std::vector<BatchStep>& steps, std::int64_t samples) {
  const auto next = std::ranges::upper_bound(steps, samples, {}, &BatchStep::from);
  return std::prev(next)->batch;
}

}  // namespace accrue
