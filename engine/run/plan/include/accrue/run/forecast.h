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
  /// The earlier run had the same micro-batch. If not, a sample is taken to cost what it cost there.
  bool same_micro_batch = true;
};

/// Whether a plan knows what the ranks of the spec will hold and send. Of a model that a plug-in library makes it does
/// not, before that has run.
bool cost_is_known(const RunSpec& spec);

/// Same model, kind of data, layout, device and threads. With the same micro-batch a sample then costs the same.
bool trains_alike(const RunSpec& left, const RunSpec& right);
/// trains_alike(), with the same optimizer, micro-batch and N: a rank then holds the same.
bool holds_alike(const RunSpec& left, const RunSpec& right);

/// How long `samples` samples of the spec will take, at the pace of an earlier run that trained alike. Best is a run
/// with the same micro-batch and N, then one with the same micro-batch, then any other; of equals the first. `earlier`
/// begins with the newest run. Empty where none trained alike.
std::optional<TimeForecast> forecast_time(const RunSpec& spec, std::int64_t samples,
                                          std::span<const EarlierRun> earlier);

}  // namespace accrue
