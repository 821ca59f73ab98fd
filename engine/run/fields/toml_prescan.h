// SPDX-License-Identifier: Apache-2.0
// Check of hostile TOML before parsing, and wording of the parser's errors.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/fields/findings.h"

namespace accrue::spec_detail {

/// Maximum nesting of brackets and maximum number of parts of a dotted key.
inline constexpr int max_toml_depth = 32;

/// Returns the first place that is not UTF-8 or nests deeper than max_toml_depth, as a finding without a file name.
std::optional<Finding> prescan_toml(std::string_view text);

/// Turns the parser's error into one line for the end of a sentence.
std::string toml_words(std::string said);

}  // namespace accrue::spec_detail
