// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// What begins a text in UTF-8 that says so.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Where UTF-8 breaks off, or npos: by the table of well-formed sequences of the Unicode standard.
std::size_t first_not_utf8(std::string_view text);

}  // namespace accrue
