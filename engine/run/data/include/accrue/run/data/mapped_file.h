// SPDX-License-Identifier: Apache-2.0
// A file of training data as read-only memory. The kernel loads only the pages that a batch touches, and ranks of one
// host share the page cache. The data are never copied as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "accrue/run/base/result.h"

namespace accrue {

class MappedFile {
 public:
  /// Errors (data): the file is missing, not regular, unreadable or empty.
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::uint8_t* data() const { return data_; }
  std::int64_t size() const { return size_; }

 private:
  MappedFile() = default;
  const std::uint8_t* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace accrue
