// SPDX-License-Identifier: Apache-2.0
// What a FileMark rests on.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

namespace accrue::test {

/// Whether the file system says that somebody has a file open for writing; without that no mark is reliable.
inline bool has_leases(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool leases = ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
  ::close(fd);
  return leases;
}

}  // namespace accrue::test
