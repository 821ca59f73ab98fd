// SPDX-License-Identifier: Apache-2.0
// Logs in JSON: one object per line (MMEngine's scalars.json, W&B's history), and the log_history of the HF Trainer's
// trainer_state.json. NaN and Infinity, in Python's spelling, are numbers.
#pragma once

#include <string>
#include <string_view>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Whether the text begins as JSON does.
bool looks_like_json(std::string_view text);

/// `seconds`: as parse_table_log. An incomplete last line is skipped, with a sentence in the problems. Errors (config):
/// a line that is not an object, by its number; no key of steps; no number; cancelled.
Result<RunLog> parse_json_log(std::string_view text, const std::string& file_name, double seconds,
                              const LogRequest& request = {});

}  // namespace accrue
