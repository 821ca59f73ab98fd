// SPDX-License-Identifier: Apache-2.0
// Memory that several processes of one host map. It is a memfd, which the others open through /proc/<pid>/fd/<fd>. So
// there is no name that could be guessed, clash or be left behind by a killed process. The size of /dev/shm (64 MB in
// many containers) is no limit. The ranks must see each other in /proc, which the rendezvous checks by comparing their
// pid namespaces.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {

/// Returns empty if fd is a memfd of this user; else describes what it is.
std::string why_not_our_memory(int fd);

class SharedSegment {
 public:
  /// Makes a zeroed segment, backed by real pages, so that a later write cannot fail. Errors: out_of_memory, with the
  /// available bytes; device if a limit of this process prevents it, with its value.
  static Result<std::shared_ptr<SharedSegment>> create(std::size_t bytes);
  /// Maps another process's segment, its descriptor `fd`. Checks first that it is a sealed memfd of this user and of
  /// this size. Errors: device.
  static Result<std::shared_ptr<SharedSegment>> open(pid_t pid, int fd, std::size_t bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Descriptor by which others open it, until close_descriptor().
  int descriptor() const { return fd_.get(); }
  /// Closes the descriptor: the memory then lives as long as its mappings.
  void close_descriptor() { fd_.reset(); }

 private:
  SharedSegment(OwnedFd fd, std::byte* data, std::size_t bytes) : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

  OwnedFd fd_;
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace accrue
