// SPDX-License-Identifier: Apache-2.0
#include "models/buffer_pool.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/Allocator.h>
#include <sys/mman.h>

#include <new>

namespace accrue {

namespace {

constexpr std::size_t small_page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

void* map_pages(std::size_t bytes) {
  // A huge page needs 2 MiB alignment: map more, and unmap the excess on both sides.
  const std::size_t slack = bytes >= huge_page ? huge_page : 0;
  void* const raw = ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  if (slack == 0) return raw;
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = round_up(begin, huge_page);
  if (aligned > begin) ::munmap(raw, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + bytes), begin + slack - aligned);
  ::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

at::Tensor BufferPool::take(at::IntArrayRef sizes, at::ScalarType type) {
  const std::int64_t bytes = c10::multiply_integers(sizes) * static_cast<std::int64_t>(c10::elementSize(type));
  const Block block = reserve(round_up(bytes == 0 ? 1 : static_cast<std::size_t>(bytes), small_page));
  c10::reportMemoryUsageToProfiler(block.data, bytes, 0, 0, at::kCPU);
  return at::from_blob(
      block.data, sizes, [this, block, bytes](void*) { give_back(block, bytes); }, at::TensorOptions(type));
}

BufferPool::Block BufferPool::reserve(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    // The best fit, unless it would waste more than it holds; among equals the one returned last, whose cache lines are
    // warm.
    const auto fit = idle_.lower_bound(bytes);
    if (fit != idle_.end() && fit->first <= 2 * bytes) {
      const auto last = std::prev(idle_.upper_bound(fit->first));
      const Block block{last->second, last->first};
      idle_.erase(last);
      return block;
    }
    mapped_bytes_ += static_cast<std::int64_t>(bytes);
    ++mappings_;
  }
  return {map_pages(bytes), bytes};
}

void BufferPool::give_back(Block block, std::int64_t bytes) {
  c10::reportMemoryUsageToProfiler(block.data, -bytes, 0, 0, at::kCPU);
  const std::lock_guard lock(mutex_);
  idle_.emplace(block.bytes, block.data);
}

std::int64_t BufferPool::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return mapped_bytes_;
}

std::int64_t BufferPool::mappings() const {
  const std::lock_guard lock(mutex_);
  return mappings_;
}

BufferPool& activation_pool() {
  static auto* const pool = new BufferPool;  // never destroyed: tensors may outlive static objects
  return *pool;
}

}  // namespace accrue
