// SPDX-License-Identifier: Apache-2.0
// Memory for activations that is reused in the next micro-step. The C library returns large blocks to the kernel at the
// end of a micro-step, and the next one then pays a page fault for every 4 KiB (24,000 for a small GPT). Here blocks
// stay mapped, in huge pages if the system has them. In the steady state there is no allocation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace accrue {

class BufferPool {
 public:
  /// Returns an uninitialised CPU tensor. Its memory returns to the pool when the last tensor on it is gone.
  /// Thread: any. Errors: throws std::bad_alloc.
  at::Tensor take(at::IntArrayRef sizes, at::ScalarType type);
  at::Tensor take_like(const at::Tensor& other) { return take(other.sizes(), other.scalar_type()); }

  std::int64_t mapped_bytes() const;  ///< held from the system, used and idle
  std::int64_t mappings() const;      ///< requests of memory from the system since the start

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  Block reserve(std::size_t bytes);
  void give_back(Block block, std::int64_t bytes);

  mutable std::mutex mutex_;
  std::multimap<std::size_t, void*> idle_;
  std::int64_t mapped_bytes_ = 0;
  std::int64_t mappings_ = 0;
};

/// Pool of the process; it outlives every tensor.
BufferPool& activation_pool();

}  // namespace accrue
