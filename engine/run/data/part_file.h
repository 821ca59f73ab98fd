// SPDX-License-Identifier: Apache-2.0
// A large file under construction: it is written through a buffer under a temporary name, and renamed when complete. It
// stays locked meanwhile; opening a file that another process writes is an error (config).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

/// The destructor closes the file and keeps its contents.
class PartFile {
 public:
  /// Creates the file, or truncates the one of an earlier writer.
  static Result<PartFile> create(const std::filesystem::path& path);
  /// Continues a file after its first `bytes` and cuts off the rest. Errors: protocol if it is shorter.
  static Result<PartFile> reopen(const std::filesystem::path& path, std::int64_t bytes);

  Result<void> append(std::string_view bytes);
  template <typename T>
  Result<void> append_values(std::span<const T> values) {
    return append({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  /// Passes the whole file in parts to `see`; all parts but the last are multiples of 64 bytes.
  Result<void> read_all(const std::function<Result<void>(std::string_view)>& see);
  /// Size of the whole file, including the buffer.
  std::int64_t size() const { return size_; }
  /// Writes the buffer and waits until everything is on the disk.
  Result<void> sync();
  /// Does sync(), then renames the file to `name` and closes it.
  Result<void> commit(const std::filesystem::path& name);

 private:
  PartFile(std::filesystem::path path, OwnedFd fd, std::int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  static Result<PartFile> open(const std::filesystem::path& path, int flags, std::int64_t bytes);
  Result<void> flush();

  std::filesystem::path path_;
  OwnedFd fd_;
  std::int64_t size_ = 0;
  std::string buffer_;
};

}  // namespace accrue
