// SPDX-License-Identifier: Apache-2.0
// Files that are given where a text is wanted and that are none. Taken byte by byte they would train a model on
// nonsense without a word.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

/// So many bytes from the front of a file tell what it is.
inline constexpr std::size_t file_head_bytes = std::size_t{1} << 16;

/// What a file is that is of a known binary format, and what to do about it.
struct ForeignFile {
  std::string_view what;  ///< "a Parquet file"
  std::string way;        ///< a sentence; empty where there is nothing to do
};
/// By its first bytes; none where they are of no such format.
std::optional<ForeignFile> foreign_file(std::string_view head, const std::filesystem::path& path);

/// The encoding of a text in another than UTF-8, as iconv calls it: UTF-16, UTF-16LE, UTF-16BE or UTF-32; empty for
/// anything else.
std::string_view wide_encoding(std::string_view head);

/// head: the first file_head_bytes of the file, or all of a shorter one. wanted: what it should be, "text".
/// Errors (data): the format of a known binary file, a text in UTF-16 or UTF-32, or a byte of zero; each with what to
/// do about it.
Result<void> check_is_text(std::string_view head, const std::filesystem::path& path, std::string_view wanted);

}  // namespace accrue
