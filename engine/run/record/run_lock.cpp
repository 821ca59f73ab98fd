// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/run_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "posix_file.h"

namespace accrue {
namespace {

/// Returns false if the file was removed or replaced between opening and locking: the lock would exclude no one.
bool is_still(const std::filesystem::path& file, int fd) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::lstat(file.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace

Result<RunLock> RunLock::take(const std::filesystem::path& dir) {
  const auto file = dir / "run.lock";
  // A reader that checks whether the run is live holds the lock for an instant.
  constexpr int tries = 20;
  constexpr int pause_ms = 5;
  for (int i = 0; i < tries; ++i) {
    auto fd = open_regular(file, O_RDWR | O_CREAT);
    if (!fd) return tl::unexpected(fd.error());
    RunLock lock;
    lock.fd_ = std::move(*fd);
    if (::flock(lock.fd(), LOCK_EX | LOCK_NB) == 0) {
      if (is_still(file, lock.fd())) return lock;
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return disk_error(file, "cannot be locked", errno);
    ::poll(nullptr, 0, pause_ms);
  }
  return fail(ErrorCode::config, "another process holds this run", dir.string(),
              "Attach to it, or wait until it has ended");
}

}  // namespace accrue
