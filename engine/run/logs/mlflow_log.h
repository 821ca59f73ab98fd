// SPDX-License-Identifier: Apache-2.0
// MLflow's metric files: one per metric of a run, with the metric's name, and lines "milliseconds value step".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Whether the text's first line is from a metric.
bool looks_like_mlflow_metric(std::string_view text);

/// Adds a metric's values; for a duplicate step the later one. An incomplete last line is skipped, with a sentence in
/// the problems. Errors (config): a line that is not from a metric, by its number.
Result<void> read_mlflow_metric(std::string_view text, const std::string& file_name, const std::string& metric,
                                RunLog& log);

/// Returns the folder of metric files in a run's folder, or that folder itself; empty if there is none.
std::filesystem::path mlflow_metrics_in(const std::filesystem::path& folder);

}  // namespace accrue
