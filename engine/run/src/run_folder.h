// SPDX-License-Identifier: Apache-2.0
// Names inside a run folder.
#pragma once

#include <filesystem>
#include <string>

namespace accrue {

/// "step-<n>" of the newest committed checkpoint, empty if there is none. Whether it verifies is for the ranks to say.
std::string newest_checkpoint(const std::filesystem::path& run_dir);

}  // namespace accrue
