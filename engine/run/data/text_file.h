// SPDX-License-Identifier: Apache-2.0
// Reads a text in parts, from its front or from the place where an earlier reader stopped. Gzipped files are unpacked;
// places are those of the text, not of the packed file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

class TextFile {
 public:
  /// Errors: data if it cannot be opened or is not a text (check_is_text); those of read().
  static Result<TextFile> open(const std::filesystem::path& path);
  TextFile(TextFile&&) noexcept;
  TextFile& operator=(TextFile&&) noexcept;
  ~TextFile();

  /// Continues at this byte of the text.
  Result<void> go_to(std::int64_t offset);
  /// Returns the next bytes, valid until the next call; none at the end. Errors: data for a packed file that is cut or
  /// damaged; disk.
  Result<std::string_view> read();
  /// Bytes of the file on disk read so far.
  std::int64_t read_of_file() const;
  /// Start of the text, after a byte-order mark.
  std::int64_t begin() const { return begin_; }

 private:
  struct Unpacker;
  explicit TextFile(std::filesystem::path path);
  tl::unexpected<Error> failed() const;

  std::filesystem::path path_;
  std::unique_ptr<Unpacker> unpacker_;
  std::string part_;
  std::int64_t begin_ = 0;
};

/// Makes the error of a text that the system does not let us read.
tl::unexpected<Error> unreadable_text(const std::filesystem::path& path, int error);

}  // namespace accrue
