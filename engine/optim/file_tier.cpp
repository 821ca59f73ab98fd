// SPDX-License-Identifier: Apache-2.0
#include "optim/file_tier.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/base/result.h"

namespace accrue {
namespace {

std::int64_t page_size() {
  static const std::int64_t size = ::sysconf(_SC_PAGESIZE);
  return size;
}

std::int64_t whole_pages(std::int64_t bytes) {
  return (bytes + page_size() - 1) / page_size() * page_size();
}

[[noreturn]] void refuse(const std::string& dir, const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  throw ResultError(
      {ErrorCode::disk, "optimizer state cannot be kept in files in " + dir + ": " + what + ": " + std::strerror(error),
       "optimizer.nvme_offload_dir",
       full ? "Free some space there, or lower nvme_offload_fraction." : "Name a folder that files can be made in."});
}

/// Reserves the file's pages; returns 0, or the error. Without room a later write to the mapping would end the process
/// by SIGBUS, when the kernel finds no block for the page.
int take_room(int fd, std::int64_t bytes) {
  if (::fallocate(fd, 0, 0, bytes) == 0) return 0;
  if (errno != EOPNOTSUPP) return errno;
  // A file system that cannot reserve: writing zeros also allocates the space.
  const std::vector<char> zeros(std::size_t{1} << 20);
  for (std::int64_t at = 0; at < bytes;) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(bytes - at, std::ssize(zeros)));
    const ssize_t written = ::pwrite(fd, zeros.data(), count, at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    at += written;
  }
  return 0;
}

/// Advises about pages of one tensor's memory, which begins at a page. madvise() takes only starts of pages, so `from`
/// is rounded down to one. Its result is ignored: without the advice the pages are read when they are used.
void advise(const at::Tensor& tensor, const FlatRange& range, int advice) {
  const auto size = static_cast<std::int64_t>(tensor.element_size());
  const std::int64_t from = range.offset * size / page_size() * page_size();
  const std::int64_t to = std::min((range.offset + range.size) * size, tensor.numel() * size);
  if (to > from)
    ::madvise(static_cast<char*>(tensor.mutable_data_ptr()) + from, static_cast<std::size_t>(to - from), advice);
}

}  // namespace

std::int64_t elements_in_files(const OptimizerSpec& spec, std::int64_t numel) {
  return keeps_states_in_files(spec)
             ? static_cast<std::int64_t>(std::floor(spec.nvme_offload_fraction * static_cast<double>(numel)))
             : 0;
}

at::Tensor tiered_zeros(std::int64_t numel, std::int64_t in_file, at::TensorOptions options, const std::string& dir) {
  if (in_file <= 0 || numel == 0) return at::zeros({numel}, options);
  const auto element = static_cast<std::int64_t>(options.dtype().itemsize());
  const std::int64_t all = whole_pages(numel * element), of_file = std::min(whole_pages(in_file * element), all);
  const OwnedFd file = nameless_file(dir);
  if (!file) refuse(dir, "a file cannot be made", errno);
  if (const int error = take_room(file.get(), of_file))
    refuse(dir, std::to_string(of_file) + " bytes cannot be taken", error);
  const auto size = static_cast<std::size_t>(all);
  // Addresses for the whole tensor come first. The file then replaces their beginning, so it and the memory behind it
  // are adjacent. Both are zeros: pages without a file and reserved pages of a new one read as such.
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse(dir, "no addresses are left", errno);
  if (::mmap(memory, static_cast<std::size_t>(of_file), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(),
             0) == MAP_FAILED) {
    const int error = errno;
    ::munmap(memory, size);
    refuse(dir, "the file cannot be mapped", error);
  }
  // The mapping keeps the file after its descriptor is closed here. munmap() frees both.
  return at::from_blob(
      memory, {numel}, [size](void* begin) { ::munmap(begin, size); }, options);
}

void will_need(const at::Tensor& tensor, const FlatRange& range) {
  advise(tensor, range, MADV_WILLNEED);
}

void not_soon(const at::Tensor& tensor, const FlatRange& range) {
#ifdef MADV_COLD
  advise(tensor, range, MADV_COLD);
#else
  (void)tensor, (void)range;
#endif
}

}  // namespace accrue
