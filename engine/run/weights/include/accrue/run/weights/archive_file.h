// SPDX-License-Identifier: Apache-2.0
// An open safetensors file: its checked header, and its tensors, read one by one into existing memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"
#include "accrue/run/weights/archive_header.h"

namespace accrue {

/// "9 bytes", for messages.
std::string data_size(std::uint64_t bytes);

struct ArchiveFile {
  OwnedFd fd;
  std::string path;
  std::string head;  ///< the bytes before the tensors: length and JSON
  ArchiveHeader header;

  /// Errors (protocol): the fault of the header, with the tensor; (disk): cannot be read.
  static Result<ArchiveFile> open(const std::filesystem::path& file);
  /// Reads a tensor's bytes into memory of that size. Errors (protocol): the file is too short, or a BOOL is neither 0
  /// nor 1; (disk).
  Result<void> read(const ArchiveEntry& entry, void* into) const;
  /// Reads bytes from a place after the header. Errors: as read().
  Result<void> read_bytes(std::uint64_t offset, void* into, std::uint64_t bytes) const;
};

}  // namespace accrue
