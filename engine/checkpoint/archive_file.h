// SPDX-License-Identifier: Apache-2.0
// An open safetensors file: its checked header, and its tensors, read one by one into existing memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "accrue/run/base/result.h"
#include "checkpoint/tensor_archive_header.h"

namespace accrue {

/// A file descriptor with an owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release_and_close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

/// "9 bytes", for messages.
std::string data_size(std::uint64_t bytes);

/// Returns the format's name of a type, null if it has none; the second function converts back, Undefined for an
/// unknown name.
const char* archive_dtype(at::ScalarType type);
at::ScalarType archive_scalar_type(const std::string& dtype);

struct ArchiveFile {
  Descriptor fd;
  std::string path;
  std::string head;  ///< the bytes before the tensors: length and JSON
  ArchiveHeader header;

  /// Errors (protocol): the fault of the header, with the tensor; (disk): cannot be read.
  static Result<ArchiveFile> open(const std::filesystem::path& file);
  /// Reads a tensor's bytes into memory of that size. Errors (protocol): the file is too short, or a BOOL is neither 0
  /// nor 1; (disk).
  Result<void> read(const ArchiveEntry& entry, void* into) const;
};

}  // namespace accrue
