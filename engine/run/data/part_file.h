// SPDX-License-Identifier: Apache-2.0
// A large file in the making: written through a buffer under a name of its own, and renamed when it is whole. It is
// locked for as long; opening one that another process writes is an error (config).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

class PartFile {
 public:
  /// Creates the file, or empties one that an earlier writer left.
  static Result<PartFile> create(const std::filesystem::path& path);
  /// Goes on with a file after its first `bytes`; what follows them is cut off. Errors: protocol where it is shorter.
  static Result<PartFile> reopen(const std::filesystem::path& path, std::int64_t bytes);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  /// Closes the file and leaves what was written.
  ~PartFile();

  Result<void> append(std::string_view bytes);
  template <typename T>
  Result<void> append_values(std::span<const T> values) {
    return append({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  /// Shows the whole file, a part after the other; parts are multiples of 64 bytes, but for the last.
  Result<void> read_all(const std::function<Result<void>(std::string_view)>& see);
  /// Of the whole file, with what is still in the buffer.
  std::int64_t size() const { return size_; }
  /// Empties the buffer and waits until the disk has everything.
  Result<void> sync();
  /// sync(), then gives the file its name and closes it.
  Result<void> commit(const std::filesystem::path& name);

 private:
  PartFile(std::filesystem::path path, int fd, std::int64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  static Result<PartFile> open(const std::filesystem::path& path, int flags, std::int64_t bytes);
  Result<void> flush();

  std::filesystem::path path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
  std::string buffer_;
};

}  // namespace accrue
