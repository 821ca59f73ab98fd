// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// Byte-order mark of UTF-8.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Returns the offset of the first byte that is not well-formed UTF-8 (by the table of the Unicode standard), or npos.
std::size_t first_not_utf8(std::string_view text);

}  // namespace accrue
