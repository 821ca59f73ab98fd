// SPDX-License-Identifier: Apache-2.0
// Where a text can be divided without a change of its words.
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// A place before white space that follows something else: the last end of a line in the second half of the text, or
/// the last place of all. 0: there is none. Of a text in UTF-8.
std::size_t cut_before_space(std::string_view text);

}  // namespace accrue
