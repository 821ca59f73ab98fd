// SPDX-License-Identifier: Apache-2.0
// GradientAccumulationPlugin: the four fields by which Accelerate's accumulation is set up, with its defaults and its
// rules. Source: Hugging Face Accelerate 1.15, GradientAccumulationPlugin. Thread: any; values and pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "accrue/run/accumulation_knobs.h"

namespace accrue::accelerate {

struct GradientAccumulationPlugin {
  /// N. Left out it means 1, whatever else is set: a plugin with only sync_with_dataloader = false does not accumulate.
  std::optional<std::int64_t> num_steps;
  /// Accepted and without effect, as in the original; ReplaySwitches::adjust_scheduler gives it the one that
  /// its documentation describes.
  bool adjust_scheduler = true;
  /// The last batch of the active prepared loader ends its window; false carries the window into the next epoch.
  bool sync_with_dataloader = true;
  /// Reduces after every micro-step: less memory under sharding, more traffic, the same update.
  bool sync_each_batch = false;
};

/// As the original prints itself.
std::ostream& operator<<(std::ostream& out, const GradientAccumulationPlugin& plugin);

/// Reads one environment variable; std::getenv in programs, a table in tests.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// The plugin in force: `plugin` as it is; else one of `steps`, which ACCELERATE_GRADIENT_ACCUMULATION_STEPS overrides.
/// Errors: throws std::invalid_argument where steps other than 1 meet a plugin, N is below 1 or the variable holds no
/// whole number.
GradientAccumulationPlugin resolve_plugin(std::int64_t steps, const std::optional<GradientAccumulationPlugin>& plugin,
                                          const Environment& environment);

/// N of a plugin. Errors: throws std::invalid_argument if it is below 1.
std::int64_t checked_steps(std::int64_t steps);

}  // namespace accrue::accelerate
