// SPDX-License-Identifier: Apache-2.0
// The one place that forces a file or a folder to the disk, so that it survives a power cut.
#pragma once

#include <filesystem>

#include "accrue/run/base/result.h"

namespace accrue {

/// Flushes a file, or the names in a folder, to the disk. Errors: disk.
Result<void> sync_path(const std::filesystem::path& path);

}  // namespace accrue
