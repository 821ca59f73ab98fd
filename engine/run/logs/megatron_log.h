// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's training output: " iteration 100/ 500000 | consumed samples: 25600 | ... | lm loss: 7.1E+00 |", among
// any other lines, and "validation loss at iteration 100 | lm loss value: 6.9E+00 | ...".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "accrue/run/base/result.h"
#include "accrue/run/logs/run_log.h"

namespace accrue {

/// Whether the text has such a line.
bool looks_like_megatron_log(std::string_view text);

/// Parses the output. "lm loss value" of a validation becomes "lm loss validation". An iteration that is not after the
/// one before it marks a restart of the run: earlier values from that iteration on are dropped. `seconds`: as
/// parse_table_log. go_on is called now and then; false cancels. Errors (config): no value in any line; cancelled.
Result<RunLog> parse_megatron_log(std::string_view text, const std::string& file_name, double seconds,
                                  const std::function<bool()>& go_on = {});

}  // namespace accrue
