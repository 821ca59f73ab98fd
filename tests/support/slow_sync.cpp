// SPDX-License-Identifier: Apache-2.0
// A disk that is slow to sync, to be preloaded into a rank: fdatasync of a file whose path contains
// ACCRUE_SLOW_SYNC_FILE takes ACCRUE_SLOW_SYNC_MS milliseconds longer.
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  const char* file = std::getenv("ACCRUE_SLOW_SYNC_FILE");
  const char* milliseconds = std::getenv("ACCRUE_SLOW_SYNC_MS");
  char link[64];
  char path[4096] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const auto length = ::readlink(link, path, sizeof path - 1);
  if (file != nullptr && milliseconds != nullptr && length > 0 && std::strstr(path, file) != nullptr) {
    ::poll(nullptr, 0, std::atoi(milliseconds));  // ranks take no signals that would cut it short
  }
  using Sync = int (*)(int);
  static const auto real = reinterpret_cast<Sync>(::dlsym(RTLD_NEXT, "fdatasync"));
  return real(fd);
}
