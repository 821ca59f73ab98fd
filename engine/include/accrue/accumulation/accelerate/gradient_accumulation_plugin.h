// SPDX-License-Identifier: Apache-2.0
// GradientAccumulationPlugin: the four fields of Accelerate's accumulation, with its defaults and rules. Source:
// Hugging Face Accelerate 1.15, GradientAccumulationPlugin. Thread: any; values and pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue::accelerate {

struct GradientAccumulationPlugin {
  /// N. Default 1, whatever else is set: a plugin with only sync_with_dataloader = false does not accumulate.
  std::optional<std::int64_t> num_steps;
  /// Accepted without effect, as in the original. ReplaySwitches::adjust_scheduler gives it the documented effect.
  bool adjust_scheduler = true;
  /// The last batch of the active prepared loader ends its window; false carries the window into the next epoch.
  bool sync_with_dataloader = true;
  /// Reduces after every micro-step: less memory under sharding, more traffic, the same update.
  bool sync_each_batch = false;
};

/// Prints like the original.
std::ostream& operator<<(std::ostream& out, const GradientAccumulationPlugin& plugin);

/// Reads one environment variable; std::getenv in programs, a table in tests.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// Returns `plugin` unchanged, or one of `steps`, which ACCELERATE_GRADIENT_ACCUMULATION_STEPS overrides. Errors:
/// throws std::invalid_argument if a plugin is given with steps other than 1, if N is below 1, or if the variable is
/// not an integer.
GradientAccumulationPlugin resolve_plugin(std::int64_t steps, const std::optional<GradientAccumulationPlugin>& plugin,
                                          const Environment& environment);

/// Returns N of a plugin. Errors: throws std::invalid_argument if it is below 1.
std::int64_t checked_steps(std::int64_t steps);

}  // namespace accrue::accelerate
