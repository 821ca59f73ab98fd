// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/checkpoint/checkpoint.h"

namespace accrue {

/// Opens a committed checkpoint: reads its manifest and the header of every file, and checks that the parts of each
/// tensor make up the whole. It does not hash contents; verify_share() does. Errors (protocol, disk): why it is
/// refused; (config): a checkpoint of another format.
Result<CheckpointReader> open_reader(const std::filesystem::path& folder, const std::string& name);

/// Checks the content of the files of one of several ranks, which divide them. Errors (protocol): the first whose size
/// or hash is not the manifest's.
Result<void> verify_share(const std::filesystem::path& folder, std::int64_t rank, std::int64_t ranks);

/// Checks that it opens and that every file has the manifest's hash. Errors as above.
Result<void> verify_checkpoint(const std::filesystem::path& folder, const std::string& name);

}  // namespace accrue
