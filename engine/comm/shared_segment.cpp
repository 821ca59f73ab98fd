// SPDX-License-Identifier: Apache-2.0
#include "shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "accrue/run/base/system_error.h"

namespace accrue {
namespace {

const char* const kUseGloo = "Set parallel.backend = \"gloo\"";

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

/// MemAvailable, or 0 if the kernel does not say.
std::size_t available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  std::size_t kib = 0;
  while (meminfo >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

tl::unexpected<Error> too_little(std::size_t wanted) {
  return fail(ErrorCode::out_of_memory,
              "the ranks need " + std::to_string(wanted) + " bytes of shared memory, and " +
                  std::to_string(available_bytes()) + " are available",
              "backend shm", std::string(kUseGloo) + " or use a smaller model");
}

/// A limit of this process (EFBIG, EMFILE) is not a lack of memory, and would also affect the other backend.
tl::unexpected<Error> not_given(std::size_t wanted, int error) {
  if (error == ENOMEM || error == ENOSPC) return too_little(wanted);
  return fail(ErrorCode::device,
              "the ranks need " + std::to_string(wanted) + " bytes of shared memory: " + system_words(error),
              "backend shm", system_hint(error));
}

std::byte* map(int fd, std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

Result<std::shared_ptr<SharedSegment>> SharedSegment::create(std::size_t bytes) {
  // Checked first: on a system with overcommit, reserving too much would trigger the kernel's killer instead of
  // failing.
  const std::size_t free = available_bytes();
  if (free != 0 && free < bytes) return too_little(bytes);
  OwnedFd fd(::memfd_create("accrue", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return not_given(bytes, errno);
  const int failure = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  const bool sealed = failure == 0 && ::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals) == 0;
  std::byte* data = sealed ? map(fd.get(), bytes) : nullptr;
  if (data == nullptr) return not_given(bytes, failure != 0 ? failure : errno);
  return std::shared_ptr<SharedSegment>(new SharedSegment(std::move(fd), data, bytes));
}

Result<std::shared_ptr<SharedSegment>> SharedSegment::open(pid_t pid, int fd, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  const OwnedFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::string wrong = !opened ? std::strerror(errno) : why_not_our_memory(opened.get());
  struct stat facts {};
  if (wrong.empty() && (::fcntl(opened.get(), F_GET_SEALS) & kSizeSeals) != kSizeSeals)
    wrong = "its size is not sealed";
  if (wrong.empty() && (::fstat(opened.get(), &facts) != 0 || static_cast<std::size_t>(facts.st_size) != bytes))
    wrong = "it holds " + std::to_string(facts.st_size) + " bytes instead of " + std::to_string(bytes);
  std::byte* data = wrong.empty() ? map(opened.get(), bytes) : nullptr;
  if (wrong.empty() && data == nullptr) wrong = std::strerror(errno);
  if (data == nullptr) {
    return fail(ErrorCode::device, "another rank's shared memory cannot be mapped: " + path + ": " + wrong,
                "backend shm", std::string(kUseGloo) + " where ranks may not see each other's processes");
  }
  return std::shared_ptr<SharedSegment>(new SharedSegment({}, data, bytes));
}

std::string why_not_our_memory(int fd) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return std::strerror(errno);
  if (!S_ISREG(facts.st_mode) || ::fcntl(fd, F_GET_SEALS) < 0) return "is no memory made by memfd_create";
  if (facts.st_uid != ::geteuid()) return "belongs to user " + std::to_string(facts.st_uid);
  return {};
}

SharedSegment::~SharedSegment() {
  ::munmap(data_, bytes_);
}

}  // namespace accrue
