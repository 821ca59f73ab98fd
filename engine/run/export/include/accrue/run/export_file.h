// SPDX-License-Identifier: Apache-2.0
// Where an export goes.
#pragma once

#include <filesystem>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

/// Writes the file whole, in place of one that is there, or leaves it as it was; others may read it as far as the umask
/// allows. Errors (disk): the path, and why.
Result<void> write_export(const std::filesystem::path& file, std::string_view text);

}  // namespace accrue
