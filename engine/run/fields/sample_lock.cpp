// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/fields/sample_lock.h"

#include <algorithm>
#include <array>
#include <limits>

#include "accrue/run/fields/accumulation_knobs.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue {

namespace {

constexpr std::int64_t updates_when_left_out = 200;

struct Factor {
  std::string_view key;
  std::int64_t& (*in)(RunSpec&);
};

constexpr std::array<Factor, 3> factors = {{
    {"accumulation.steps", [](RunSpec& spec) -> std::int64_t& { return spec.accumulation.steps; }},
    {"accumulation.micro_batch", [](RunSpec& spec) -> std::int64_t& { return spec.accumulation.micro_batch; }},
    {"parallel.data", [](RunSpec& spec) -> std::int64_t& { return spec.parallel.data; }},
}};

const Factor* factor_of(std::string_view key) {
  const auto* at = std::ranges::find(factors, key, &Factor::key);
  return at == factors.end() ? nullptr : at;
}

bool in_range(std::string_view key, std::int64_t value) {
  const SpecField& field = *find_field(key);
  return static_cast<double>(value) >= field.minimum && static_cast<double>(value) <= field.maximum;
}

/// Empty: too large, or not a number of samples.
std::optional<std::int64_t> product(std::initializer_list<std::int64_t> numbers) {
  std::int64_t result = 1;
  for (const std::int64_t number : numbers) {
    if (number < 1 || result > std::numeric_limits<std::int64_t>::max() / number) return std::nullopt;
    result *= number;
  }
  return result;
}

std::optional<std::int64_t> per_update(const RunSpec& spec) {
  return product({spec.accumulation.steps, spec.accumulation.micro_batch, spec.parallel.data});
}

/// Factors that may follow an edit, in order of preference.
std::vector<std::string_view> followers(std::string_view key) {
  if (key == "accumulation.steps") return {"accumulation.micro_batch"};
  if (key == "accumulation.micro_batch") return {"accumulation.steps"};
  return {"accumulation.steps", "accumulation.micro_batch"};
}

/// Required value of the follower; empty if it is not an integer in range.
std::optional<std::int64_t> followed(const RunSpec& spec, const Factor& follower, std::int64_t samples) {
  RunSpec without = spec;
  follower.in(without) = 1;
  const auto others = per_update(without);
  if (!others || samples % *others != 0 || !in_range(follower.key, samples / *others)) return std::nullopt;
  return samples / *others;
}

}  // namespace

bool is_sample_factor(std::string_view key) {
  return factor_of(key) != nullptr;
}

std::int64_t locked_samples(const RunSpec& spec, SampleLock lock) {
  if (lock == SampleLock::none) return 0;
  const auto each = per_update(spec);
  if (!each || lock == SampleLock::per_update) return each.value_or(0);
  if (spec.run.epochs || spec.run.samples || spec.run.tokens) return 0;
  return product({*each, spec.run.updates.value_or(updates_when_left_out)}).value_or(0);
}

std::optional<RunSpec> keep_samples(const RunSpec& edited, std::string_view key, SampleLock lock,
                                    std::int64_t samples) {
  if (!is_sample_factor(key) || lock == SampleLock::none || samples < 1) return edited;
  RunSpec kept = edited;
  if (lock == SampleLock::in_total) {
    const auto each = per_update(edited);
    if (!each || samples % *each != 0 || !in_range("run.updates", samples / *each)) return std::nullopt;
    kept.run.updates = samples / *each;
    return kept;
  }
  for (const std::string_view name : followers(key)) {
    const Factor& follower = *factor_of(name);
    if (const auto value = followed(edited, follower, samples)) {
      follower.in(kept) = *value;
      return kept;
    }
  }
  return std::nullopt;
}

std::vector<std::int64_t> nearest_kept(const RunSpec& edited, std::string_view key, SampleLock lock,
                                       std::int64_t samples) {
  const Factor* factor = factor_of(key);
  if (!factor || lock == SampleLock::none || samples < 1) return {};
  RunSpec probe = edited;
  const std::int64_t now = factor->in(probe);
  std::optional<std::int64_t> below;
  std::optional<std::int64_t> above;
  // A value that keeps the samples divides them.
  for (const std::int64_t value : divisors_of(samples)) {
    if (value == now || !in_range(key, value) || (value > now && above)) continue;
    factor->in(probe) = value;
    if (keep_samples(probe, key, lock, samples)) (value < now ? below : above) = value;
  }
  std::vector<std::int64_t> nearest;
  for (const auto& value : {below, above})
    if (value) nearest.push_back(*value);
  return nearest;
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  constexpr std::int64_t furthest = 4'000'000;
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t each = 1; each <= furthest && each <= number / each; ++each) {
    if (number % each != 0) continue;
    small.push_back(each);
    if (each != number / each) large.push_back(number / each);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

}  // namespace accrue
