// SPDX-License-Identifier: Apache-2.0
#include "posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "accrue/run/base/counted.h"
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

Result<int> open_regular(const std::filesystem::path& path, int flags, unsigned mode) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
  const FileUse use = (flags & O_ACCMODE) == O_RDONLY ? FileUse::read : FileUse::write;
  if (fd < 0)
    return disk_error(path, errno == ELOOP ? "is a link and is not followed" : "cannot be opened", errno, use);
  struct stat facts {};
  if (::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) return fd;
  ::close(fd);
  return fail(ErrorCode::disk, "is not a regular file", path.string(), "Remove it, or restore the run folder");
}

Result<void> sync_path(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return disk_error(path, "cannot be opened", errno);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (error != 0) return disk_error(path, "cannot be brought to the disk", error);
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

Result<void> write_file(const std::filesystem::path& path, std::string_view text, unsigned mode) {
  const auto part = part_of(path);
  ::unlink(part.c_str());  // left by a killed writer, or created by another program
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) return disk_error(path, "cannot be written", errno);
  int error = write_all(fd, text);
  if (error == 0 && ::fdatasync(fd) != 0) error = errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(part.c_str());
  return disk_error(path, "cannot be written", error);
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return disk_error(path, "cannot be opened", errno, FileUse::read);
  std::string text;
  char buffer[16384];
  for (;;) {
    const auto count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      ::close(fd);
      return disk_error(path, "cannot be read", error, FileUse::read);
    }
    if (count == 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      ::close(fd);
      return fail(ErrorCode::protocol, fmt::format("is larger than the {} allowed", format_bytes(max_bytes)),
                  path.string());
    }
  }
  ::close(fd);
  return text;
}

std::int64_t free_bytes(const std::filesystem::path& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return -1;
  return static_cast<std::int64_t>(facts.f_bavail) * static_cast<std::int64_t>(facts.f_frsize);
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 1024) return counted(bytes, "byte");
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(units)) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace accrue
