// SPDX-License-Identifier: Apache-2.0
// A folder of weights in Hugging Face's layout: config.json beside model.safetensors, or beside several files that
// model.safetensors.index.json lists. Only headers are read here.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/weights/archive_file.h"

namespace accrue {

struct WeightsFolder {
  struct Place {
    std::size_t file = 0;   ///< of `files`
    std::size_t entry = 0;  ///< of its header
  };

  std::filesystem::path folder;
  std::string config;  ///< text of config.json; empty if there is none
  std::vector<ArchiveFile> files;
  std::map<std::string, Place> tensors;

  /// Errors (data): no weights, pickled weights, an index and files that contradict each other, a damaged file.
  static Result<WeightsFolder> open(const std::filesystem::path& folder);

  const ArchiveEntry* find(const std::string& tensor) const;
};

}  // namespace accrue
