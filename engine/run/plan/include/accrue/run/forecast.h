// SPDX-License-Identifier: Apache-2.0
// How long a run will take, from runs that were measured before. There is no model of the machine: what was not
// measured is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "accrue/run/run_spec.h"

namespace accrue {

/// A run of this host that has trained for some time.
struct EarlierRun {
  std::string name;
  RunSpec spec;
  double seconds = 0.0;
  std::int64_t samples = 0;
};

struct TimeForecast {
  double seconds = 0.0;
  std::string from;  ///< the earlier run's name
  /// It had the same micro-batch. Where not, a sample is taken to cost what it did there.
  bool same_micro_batch = true;
};

/// Same model, device, threads and layout: a sample costs the same if the micro-batch is the same, too.
bool trains_alike(const RunSpec& left, const RunSpec& right);
/// And the same optimizer, micro-batch and N: a rank holds the same.
bool holds_alike(const RunSpec& left, const RunSpec& right);

/// For so many samples of the spec, from the first of the earlier runs (the newest first) that trained alike, one with
/// the same micro-batch and N before one with the same micro-batch before others. Empty where none did.
std::optional<TimeForecast> forecast_time(const RunSpec& spec, std::int64_t samples,
                                          std::span<const EarlierRun> earlier);

}  // namespace accrue
