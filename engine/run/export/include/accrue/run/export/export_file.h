// SPDX-License-Identifier: Apache-2.0
// Writer of exported files.
#pragma once

#include <filesystem>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

/// Writes the file atomically, replacing an existing one, or leaves it as it was. The umask decides who may read it.
/// Errors (disk): the path, and why.
Result<void> write_export(const std::filesystem::path& file, std::string_view text);

}  // namespace accrue
