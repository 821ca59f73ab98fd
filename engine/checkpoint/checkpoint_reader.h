// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "accrue/checkpoint/checkpoint.h"

namespace accrue {

/// Opens a committed checkpoint: reads its manifest and the header of every file, and checks that the parts of each
/// tensor make up the whole. Contents are not hashed; verify_files() does that. Errors (protocol, disk): why it is
/// refused; (config): a checkpoint of another format.
Result<CheckpointReader> open_reader(const std::filesystem::path& folder, const std::string& name);

/// Whether it opens and every file has the hash in the manifest. Errors as above.
Result<void> verify_checkpoint(const std::filesystem::path& folder, const std::string& name);

}  // namespace accrue
