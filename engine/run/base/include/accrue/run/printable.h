// SPDX-License-Identifier: Apache-2.0
// Text from files, as it may be shown on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace accrue {

/// The text with every control character but newline and tab spelled out (\x1b), so that a name, a key or a message
/// from a file can neither move the cursor nor give the terminal orders.
std::string printable(std::string_view text);

}  // namespace accrue
