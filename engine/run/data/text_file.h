// SPDX-License-Identifier: Apache-2.0
// A text as it is read a part at a time, from its front or from where an earlier reader stopped. One that gzip has
// packed is unpacked on the way; places are those of the text, not of the packed file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

class TextFile {
 public:
  /// Errors: data where it cannot be opened, or is no text (check_is_text); those of read().
  static Result<TextFile> open(const std::filesystem::path& path);
  TextFile(TextFile&&) noexcept;
  TextFile& operator=(TextFile&&) noexcept;
  ~TextFile();

  /// Goes on from this byte of the text.
  Result<void> go_to(std::int64_t offset);
  /// The next bytes, until the following call; none at the end. Errors: data for a packed file that was cut or is
  /// damaged; disk.
  Result<std::string_view> read();
  /// Bytes of the file on disk that were read so far.
  std::int64_t read_of_file() const;
  /// Where the text begins: behind a byte-order mark.
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

/// The error of a text that the system does not let us read.
tl::unexpected<Error> unreadable_text(const std::filesystem::path& path, int error);

}  // namespace accrue
