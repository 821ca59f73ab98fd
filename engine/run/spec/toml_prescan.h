// SPDX-License-Identifier: Apache-2.0
// A look at hostile TOML before the parser sees it.
#pragma once

#include <optional>
#include <string_view>

#include "accrue/run/findings.h"

namespace accrue::spec_detail {

/// Deepest nesting of brackets, and most parts of a dotted key, that a spec may have.
inline constexpr int max_toml_depth = 32;

/// The first place where a text nests deeper than max_toml_depth, as a finding without a file name.
std::optional<Finding> prescan_toml(std::string_view text);

}  // namespace accrue::spec_detail
