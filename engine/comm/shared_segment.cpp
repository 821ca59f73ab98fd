// SPDX-License-Identifier: Apache-2.0
#include "shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace accrue {
namespace {

const char* const kUseGloo = "Set parallel.backend = \"gloo\"";

/// MemAvailable, or 0 where the kernel does not say.
std::size_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  std::size_t kib = 0;
  while (meminfo >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

tl::unexpected<Error> too_little(std::size_t wanted, const std::string& why) {
  const std::size_t free = available_bytes();
  std::string message =
      "shared memory of " + std::to_string(wanted) + " bytes for the ranks' gradients is not to be had";
  if (free < wanted) message += ": " + std::to_string(wanted - free) + " bytes are missing";
  if (!why.empty()) message += " (" + why + ")";
  return fail(ErrorCode::out_of_memory, message, "backend shm", std::string(kUseGloo) + " or use a smaller model");
}

std::byte* map(int fd, std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

Result<std::shared_ptr<SharedSegment>> SharedSegment::create(std::size_t bytes) {
  // Asked first: on a system that overcommits, reserving more than there is would wake the kernel's killer instead of
  // failing.
  const std::size_t free = available_bytes();
  if (free != 0 && free < bytes) return too_little(bytes, "");
  const int fd = ::memfd_create("accrue", MFD_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorCode::device, std::string("no shared memory: memfd_create: ") + std::strerror(errno),
                "backend shm", kUseGloo);
  }
  const int failure = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  std::byte* data = failure == 0 ? map(fd, bytes) : nullptr;
  if (data == nullptr) {
    const std::string why = std::strerror(failure != 0 ? failure : errno);
    ::close(fd);
    return too_little(bytes, why);
  }
  return std::shared_ptr<SharedSegment>(new SharedSegment(fd, data, bytes));
}

Result<std::shared_ptr<SharedSegment>> SharedSegment::open(const std::string& path, std::size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::byte* data = fd >= 0 ? map(fd, bytes) : nullptr;
  const int failure = errno;
  if (fd >= 0) ::close(fd);
  if (data == nullptr) {
    return fail(ErrorCode::device,
                "another rank's shared memory cannot be mapped: " + path + ": " + std::strerror(failure), "backend shm",
                std::string(kUseGloo) + " where ranks may not see each other's processes");
  }
  return std::shared_ptr<SharedSegment>(new SharedSegment(-1, data, bytes));
}

SharedSegment::~SharedSegment() {
  ::munmap(data_, bytes_);
  close_descriptor();
}

std::string SharedSegment::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_);
}

void SharedSegment::close_descriptor() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace accrue
