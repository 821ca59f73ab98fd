// SPDX-License-Identifier: Apache-2.0
// Tells without reading whether a file was written: the state of a FileMark (data_facts.h).
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace accrue {

/// Returns properties that change whenever a file's bytes are written.
std::string state_of(const struct stat& status);
/// Whether the file is in this state, and any later change would give it another one. The latter fails for a file that
/// changed a moment ago, because a file system's clock may stand still for that long, and for one that is open for
/// writing.
bool is_settled(const std::filesystem::path& file, const std::string& state);

}  // namespace accrue
