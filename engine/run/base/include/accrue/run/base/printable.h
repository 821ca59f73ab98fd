// SPDX-License-Identifier: Apache-2.0
// Text from files, made safe to print on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace accrue {

/// Spells out every control character except newline and tab (\x1b). So a name, a key or a message from a file cannot
/// control the terminal.
std::string printable(std::string_view text);

}  // namespace accrue
