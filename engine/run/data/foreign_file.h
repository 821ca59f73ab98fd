// SPDX-License-Identifier: Apache-2.0
// Files that are given where a text is wanted and that are none. Taken byte by byte they would train a model on
// nonsense without a word.
#pragma once

#include <filesystem>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

/// So many bytes from the front of a file tell what it is.
inline constexpr std::size_t file_head_bytes = std::size_t{1} << 16;

/// head: the first file_head_bytes of the file, or all of a shorter one. wanted: what it should be, "text".
/// Errors (data): the format of a known binary file, a text in UTF-16 or UTF-32, or a byte of zero; each with what to
/// do about it.
Result<void> check_is_text(std::string_view head, const std::filesystem::path& path, std::string_view wanted);

}  // namespace accrue
