// SPDX-License-Identifier: Apache-2.0
// Forecast of a run's duration from earlier measured runs. There is no model of the machine: unmeasured set-ups have no
// forecast.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// An earlier run on this host that trained for some time.
struct EarlierRun {
  std::string name;
  RunSpec spec;
  double seconds = 0.0;
  std::int64_t samples = 0;
};

struct TimeForecast {
  double seconds = 0.0;
  std::string from;  ///< the earlier run's name
  /// Whether the earlier run had the same micro-batch. If not, the cost per sample is assumed equal.
  bool same_micro_batch = true;
};

/// Whether a plan knows the memory and traffic of the spec's ranks. For a model of a plug-in library it does not before
/// the first run.
bool cost_is_known(const RunSpec& spec);

/// Whether two specs have the same model, kind of data, layout, device and threads. With the same micro-batch a sample
/// then costs the same.
bool trains_alike(const RunSpec& left, const RunSpec& right);
/// Whether trains_alike() holds and optimizer, micro-batch and N are the same: a rank then needs the same memory.
bool holds_alike(const RunSpec& left, const RunSpec& right);

/// Returns the time for `samples` samples of the spec, at the pace of an earlier run that trained alike. A run with the
/// same micro-batch and N is preferred, then one with the same micro-batch, then any other; among equals the first.
/// `earlier` begins with the newest run. Empty if none trained alike.
std::optional<TimeForecast> forecast_time(const RunSpec& spec, std::int64_t samples,
                                          std::span<const EarlierRun> earlier);

}  // namespace accrue
