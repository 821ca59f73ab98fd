// SPDX-License-Identifier: Apache-2.0
// What Megatron-LM prints while it trains: " iteration 100/ 500000 | consumed samples: 25600 | ... | lm loss: 7.1E+00
// |", among any other lines, and "validation loss at iteration 100 | lm loss value: 6.9E+00 | ...".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "accrue/run/result.h"
#include "accrue/run/run_log.h"

namespace accrue {

/// Whether one of the text's lines is such a one.
bool looks_like_megatron_log(std::string_view text);

/// What a line calls "lm loss value" at a validation becomes "lm loss validation". An iteration that is not behind the
/// one before it says that the run was started again there: what was printed from there on is dropped. `seconds`:
/// as parse_table_log. go_on is asked now and then; false ends it. Errors (config): no value in any line; given up
/// (cancelled).
Result<RunLog> parse_megatron_log(std::string_view text, const std::string& file_name, double seconds,
                                  const std::function<bool()>& go_on = {});

}  // namespace accrue
