// SPDX-License-Identifier: Apache-2.0
#include "part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "accrue/run/base/counted.h"
#include "posix_file.h"

namespace accrue {
namespace {

constexpr std::size_t part_buffer_bytes = std::size_t{1} << 20;

}  // namespace

Result<PartFile> PartFile::open(const std::filesystem::path& path, int flags, std::int64_t bytes) {
  auto opened = open_regular(path, O_RDWR | flags, shared_mode);
  if (!opened) return tl::unexpected(opened.error());
  const int fd = opened->get();
  PartFile file(path, std::move(*opened), bytes);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::config, "is being written by another process", path.string());
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return disk_error(path, "cannot be read", errno);
  if (facts.st_size < bytes)
    return fail(ErrorCode::protocol,
                fmt::format("has {} of the {} that were written before", counted(facts.st_size, "byte"), bytes),
                path.string(), "Remove the file and begin again");
  if (::ftruncate(fd, bytes) == 0 && ::lseek(fd, bytes, SEEK_SET) >= 0) return file;
  const int error = errno;
  if ((flags & O_CREAT) != 0) ::unlink(path.c_str());
  return disk_error(path, "cannot be written", error);
}

Result<PartFile> PartFile::create(const std::filesystem::path& path) {
  return open(path, O_CREAT, 0);
}

Result<PartFile> PartFile::reopen(const std::filesystem::path& path, std::int64_t bytes) {
  return open(path, 0, bytes);
}

Result<void> PartFile::flush() {
  if (const int error = write_all(fd_.get(), buffer_); error != 0) return disk_error(path_, "cannot be written", error);
  buffer_.clear();
  return {};
}

Result<void> PartFile::append(std::string_view bytes) {
  buffer_.append(bytes);
  size_ += static_cast<std::int64_t>(bytes.size());
  return buffer_.size() < part_buffer_bytes ? Result<void>() : flush();
}

Result<void> PartFile::read_all(const std::function<Result<void>(std::string_view)>& see) {
  if (auto flushed = flush(); !flushed) return flushed;
  std::string part(part_buffer_bytes, '\0');
  for (std::int64_t at = 0; at < size_;) {
    const auto wanted = std::min<std::size_t>(part.size(), static_cast<std::size_t>(size_ - at));
    std::size_t filled = 0;
    while (filled < wanted) {
      const auto count =
          ::pread(fd_.get(), part.data() + filled, wanted - filled, at + static_cast<std::int64_t>(filled));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return disk_error(path_, "cannot be read", count < 0 ? errno : EIO);
      filled += static_cast<std::size_t>(count);
    }
    if (auto seen = see({part.data(), wanted}); !seen) return seen;
    at += static_cast<std::int64_t>(wanted);
  }
  return {};
}

Result<void> PartFile::sync() {
  if (auto flushed = flush(); !flushed) return flushed;
  if (::fdatasync(fd_.get()) != 0) return disk_error(path_, "cannot be written", errno);
  return {};
}

Result<void> PartFile::commit(const std::filesystem::path& name) {
  if (auto synced = sync(); !synced) return synced;
  if (::rename(path_.c_str(), name.c_str()) != 0) return disk_error(name, "cannot be written", errno);
  fd_.reset();
  return {};
}

}  // namespace accrue
