// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "accrue/run/base/owned_fd.h"

namespace accrue {
namespace {

tl::unexpected<Error> data_error(const std::filesystem::path& path, const std::string& what) {
  return fail(ErrorCode::data, what, path.string(), "Check the path.");
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return data_error(path, std::string("the data cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  const bool regular = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (!regular || status.st_size == 0)
    return data_error(path, regular ? "the data file is empty" : "the data is not a regular file");
  void* memory = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return data_error(path, std::string("the data cannot be mapped: ") + std::strerror(errno));
  MappedFile file;
  file.data_ = static_cast<const std::uint8_t*>(memory);
  file.size_ = status.st_size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::uint8_t*>(data_), static_cast<std::size_t>(size_));
}

}  // namespace accrue
