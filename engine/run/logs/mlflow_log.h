// SPDX-License-Identifier: Apache-2.0
// MLflow's metric files: one for each metric of a run, under the metric's name, "milliseconds value step" a line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// Whether the text's first line is one of a metric.
bool looks_like_mlflow_metric(std::string_view text);

/// Adds a metric's values; of a step that is told twice the later. A last line that is cut short is left out, with a
/// sentence in the problems. Errors (config): a line that is not one of a metric, by its number.
Result<void> read_mlflow_metric(std::string_view text, const std::string& file_name, const std::string& metric,
                                RunLog& log);

/// The folder of metric files in a run's folder, or that folder itself; empty where there is none.
std::filesystem::path mlflow_metrics_in(const std::filesystem::path& folder);

}  // namespace accrue
