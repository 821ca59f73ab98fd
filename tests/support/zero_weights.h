// SPDX-License-Identifier: Apache-2.0
// Files of weights whose numbers are all zero.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "accrue/run/weights/archive_header.h"
#include "accrue/run/weights/huggingface_config.h"

namespace accrue::test {

/// Writes a safetensors file of tensors whose names follow a prefix. Returns its size.
template <typename Tensors>
std::uintmax_t write_zeros(const std::filesystem::path& path, const std::string& prefix, const Tensors& tensors) {
  ArchiveHeader header;
  std::uint64_t at = 0;
  for (const auto& each : tensors) {
    std::uint64_t bytes = 4;
    for (const std::int64_t dim : each.shape) bytes *= static_cast<std::uint64_t>(dim);
    header.entries.push_back({prefix + each.name, "F32", each.shape, at, at + bytes});
    at += bytes;
  }
  const std::string json = format_archive_header(header);
  const std::uint64_t length = json.size();
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << json << std::string(at, '\0');
  return sizeof length + length + at;
}

/// A folder of weights in Hugging Face's layout.
inline void write_zero_weights(const std::filesystem::path& folder, const std::string& config) {
  const auto read = read_huggingface_config(config, "config.json");
  write_zeros(folder / "model.safetensors", "", needed_tensors(read->names, read->model));
  std::ofstream(folder / "config.json") << config;
}

}  // namespace accrue::test
