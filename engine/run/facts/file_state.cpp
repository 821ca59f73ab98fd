// SPDX-License-Identifier: Apache-2.0
#include "file_state.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <ctime>

#include "accrue/run/base/owned_fd.h"

namespace accrue {
namespace {

/// Whether a process could change the bytes without a trace: a writer through a mapping need not update the times.
bool open_for_writing(int fd) {
  ::fcntl(fd, F_SETSIG, SIGURG);  // sent when a writer opens the file meanwhile; its default action is to ignore it
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return true;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

bool is_settled(int fd, const std::string& state) {
  constexpr std::int64_t settles_s = 2;
  struct stat status {};
  struct timespec now {};
  return ::fstat(fd, &status) == 0 && ::clock_gettime(CLOCK_REALTIME, &now) == 0 && state_of(status) == state &&
         now.tv_sec - status.st_ctim.tv_sec > settles_s && !open_for_writing(fd);
}

}  // namespace

std::string state_of(const struct stat& status) {
  return fmt::format("{}:{}:{}:{}.{:09}", status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

bool is_settled(const std::filesystem::path& file, const std::string& state) {
  const OwnedFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return fd && is_settled(fd.get(), state);
}

}  // namespace accrue
