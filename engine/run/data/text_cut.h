// SPDX-License-Identifier: Apache-2.0
// Places at which a text can be divided without changing its words.
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

/// Returns a place before white space that follows another character: the last line end behind a letter in the second
/// half of the text, else the last space, else any such place. Some tokenizers join punctuation to the line end behind
/// it, and none to a space. 0: none. The text is UTF-8.
std::size_t cut_before_space(std::string_view text);

}  // namespace accrue
