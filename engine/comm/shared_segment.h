// SPDX-License-Identifier: Apache-2.0
// A piece of memory that several processes of one host map. It is a memfd, which the others open through
// /proc/<pid>/fd/<fd>: there is no name to guess, to clash with or to leave behind, whatever dies and when, and the
// size of /dev/shm (64 MB in many containers) is no limit. The cost: the ranks must see each other in /proc, which the
// rendezvous checks by comparing their pid namespaces.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "accrue/run/result.h"

namespace accrue {

/// Empty where fd is a memfd of this user; else what it is instead, in words.
std::string why_not_our_memory(int fd);

class SharedSegment {
 public:
  /// Zeroed and backed by real pages, so that a later write cannot fail. Errors: out_of_memory, with the bytes that are
  /// available; device, where a limit of this process is in the way, with its value.
  static Result<std::shared_ptr<SharedSegment>> create(std::size_t bytes);
  /// Maps the segment that another process holds as its descriptor `fd`. It is checked first: a sealed memfd of this
  /// user and of this size. Errors: device.
  static Result<std::shared_ptr<SharedSegment>> open(pid_t pid, int fd, std::size_t bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// By which others open it, until close_descriptor().
  int descriptor() const { return fd_; }
  /// After this the memory lives exactly as long as its mappings.
  void close_descriptor();

 private:
  SharedSegment(int fd, std::byte* data, std::size_t bytes) : fd_(fd), data_(data), bytes_(bytes) {}

  int fd_;
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace accrue
