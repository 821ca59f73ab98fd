// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace accrue {

/// Whether the text can name a run: letters, digits, "-" and "_", at most 64. It becomes part of a socket's path.
bool is_run_id(std::string_view text);

}  // namespace accrue
