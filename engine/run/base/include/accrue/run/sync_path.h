// SPDX-License-Identifier: Apache-2.0
// A file or folder that must outlast a power cut: the one place that asks the system for it.
#pragma once

#include <filesystem>

#include "accrue/run/result.h"

namespace accrue {

/// Brings a file, or the names in a folder, to the disk. Errors: disk.
Result<void> sync_path(const std::filesystem::path& path);

}  // namespace accrue
