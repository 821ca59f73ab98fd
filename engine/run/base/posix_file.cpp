// SPDX-License-Identifier: Apache-2.0
#include "posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/system_error.h"

namespace accrue {

tl::unexpected<Error> disk_error(const std::filesystem::path& path, std::string_view what, int error, FileUse use) {
  return fail(ErrorCode::disk, fmt::format("{}: {}", what, system_words(error)), path.string(),
              system_hint(error, use));
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

Result<OwnedFd> open_regular(const std::filesystem::path& path, int flags, unsigned mode) {
  OwnedFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode));
  const FileUse use = (flags & O_ACCMODE) == O_RDONLY ? FileUse::read : FileUse::write;
  if (!fd) return disk_error(path, errno == ELOOP ? "is a link and is not followed" : "cannot be opened", errno, use);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) == 0 && S_ISREG(facts.st_mode)) return fd;
  return fail(ErrorCode::disk, "is not a regular file", path.string(), "Remove it, or restore the run folder");
}

bool is_file_locked(const std::filesystem::path& path) {
  const auto fd = open_regular(path, O_RDONLY);
  return fd && ::flock(fd->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<void> sync_path(const std::filesystem::path& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return disk_error(path, "cannot be opened", errno);
  if (::fsync(fd.get()) != 0) return disk_error(path, "cannot be brought to the disk", errno);
  return {};
}

std::filesystem::path part_of(const std::filesystem::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".part");
}

Result<std::filesystem::path> absolute_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return fail(ErrorCode::config, "no folder is named", {}, "Give the path of a run folder");
  std::error_code error;
  const auto absolute = std::filesystem::absolute(folder, error);
  if (error) return fail(ErrorCode::config, "has no absolute path: " + error.message(), folder.string());
  auto normal = absolute.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

Result<OwnedFd> create_part(const std::filesystem::path& path, unsigned mode) {
  const auto part = part_of(path);
  ::unlink(part.c_str());  // left by a killed writer, or created by another program
  OwnedFd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return disk_error(path, "cannot be written", errno);
  return fd;
}

Result<void> place_part(const std::filesystem::path& path, OwnedFd part, int error) {
  const auto name = part_of(path);
  if (const int failed = part.close(); error == 0) error = failed;
  if (error == 0 && ::rename(name.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(name.c_str());
  return disk_error(path, "cannot be written", error);
}

Result<void> write_file(const std::filesystem::path& path, std::string_view text, unsigned mode) {
  auto part = create_part(path, mode);
  if (!part) return tl::unexpected(part.error());
  int error = write_all(part->get(), text);
  if (error == 0 && ::fdatasync(part->get()) != 0) error = errno;
  return place_part(path, std::move(*part), error);
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return disk_error(path, "cannot be opened", errno, FileUse::read);
  std::string text;
  char buffer[16384];
  for (;;) {
    const auto count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return disk_error(path, "cannot be read", errno, FileUse::read);
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > max_bytes)
      return fail(ErrorCode::protocol, fmt::format("is larger than the {} allowed", format_bytes(max_bytes)),
                  path.string());
  }
}

std::int64_t free_bytes(const std::filesystem::path& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return -1;
  return static_cast<std::int64_t>(facts.f_bavail) * static_cast<std::int64_t>(facts.f_frsize);
}

}  // namespace accrue
