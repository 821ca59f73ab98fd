// SPDX-License-Identifier: Apache-2.0
// Detection of files that are not texts. Read byte by byte, they would silently train a model on nonsense.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

/// Number of bytes from the front of a file that identify its kind.
inline constexpr std::size_t file_head_bytes = std::size_t{1} << 16;

/// Known binary format of a file, and advice for it.
struct ForeignFile {
  std::string_view what;  ///< "a Parquet file"
  std::string way;        ///< a sentence of advice; may be empty
};
/// Identifies a format by a file's first bytes; none if unknown.
std::optional<ForeignFile> foreign_file(std::string_view head, const std::filesystem::path& path);

/// Encoding of a text that is not UTF-8, by iconv's name: UTF-16, UTF-16LE, UTF-16BE or UTF-32; empty for anything
/// else.
std::string_view wide_encoding(std::string_view head);

/// `head`: the first file_head_bytes of the file, or all of a shorter one. `wanted`: the expected kind, "text". Errors
/// (data), each with advice: a known binary format, a text in UTF-16 or UTF-32, a zero byte.
Result<void> check_is_text(std::string_view head, const std::filesystem::path& path, std::string_view wanted);

}  // namespace accrue
