// SPDX-License-Identifier: Apache-2.0
// A folder of weights in Hugging Face's layout whose numbers are all zero.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "accrue/run/weights/archive_header.h"
#include "accrue/run/weights/huggingface_config.h"

namespace accrue::test {

inline void write_zero_weights(const std::filesystem::path& folder, const std::string& config) {
  const auto read = read_huggingface_config(config, "config.json");
  ArchiveHeader header;
  std::uint64_t at = 0;
  for (const NeededTensor& each : needed_tensors(read->names, read->model)) {
    std::uint64_t bytes = 4;
    for (const std::int64_t dim : each.shape) bytes *= static_cast<std::uint64_t>(dim);
    header.entries.push_back({each.name, "F32", each.shape, at, at + bytes});
    at += bytes;
  }
  const std::string json = format_archive_header(header);
  const std::uint64_t length = json.size();
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << config;
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << json << std::string(at, '\0');
}

}  // namespace accrue::test
