// SPDX-License-Identifier: Apache-2.0
// JSON header of a safetensors file. A hostile file is refused here, before any allocation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

/// Maximum accepted length of a header; the format itself allows 100 MB.
constexpr std::uint64_t max_archive_header_bytes = 8'000'000;

struct ArchiveEntry {
  std::string name;
  std::string dtype;  ///< BOOL U8 I32 I64 F16 BF16 F32 F64
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< bytes from the end of the header
  std::uint64_t end = 0;
};

struct ArchiveHeader {
  std::vector<ArchiveEntry> entries;  ///< by offset
  std::map<std::string, std::string> metadata;
};

/// Bytes of one element, 0 for an unsupported dtype.
std::uint64_t archive_dtype_bytes(std::string_view dtype);

/// Reads a header and checks that its tensors tile [0, data_bytes) exactly.
/// Errors (protocol): the fault; where = the tensor's name.
Result<ArchiveHeader> parse_archive_header(std::string_view json, std::uint64_t data_bytes);

/// The header's JSON, padded with spaces to a multiple of 8 bytes.
std::string format_archive_header(const ArchiveHeader& header);

/// Makes a name from a file safe for a message: printable ASCII, at most 80 characters.
std::string printable_name(std::string_view name);

}  // namespace accrue
