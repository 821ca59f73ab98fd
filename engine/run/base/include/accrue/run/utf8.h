// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// Where UTF-8 breaks off, or npos: by the table of well-formed sequences of the Unicode standard.
std::size_t first_not_utf8(std::string_view text);

}  // namespace accrue
