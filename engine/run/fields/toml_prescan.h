// SPDX-License-Identifier: Apache-2.0
// A look at hostile TOML before the parser sees it, and what the parser says of TOML that it does not take.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/findings.h"

namespace accrue::spec_detail {

/// Deepest nesting of brackets, and most parts of a dotted key, that a spec may have.
inline constexpr int max_toml_depth = 32;

/// The first place where a text is no UTF-8 or nests deeper than max_toml_depth, as a finding without a file name.
std::optional<Finding> prescan_toml(std::string_view text);

/// What the parser says of an error, for the end of a sentence, on one line.
std::string toml_words(std::string said);

}  // namespace accrue::spec_detail
