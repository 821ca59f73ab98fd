// SPDX-License-Identifier: Apache-2.0
// Memory for activations that is reused in the next micro-step. The C library returns large blocks to the
// kernel as soon as a micro-step ends, and the next one then pays a page fault for every 4 KiB (24,000 for a small
// GPT); here blocks stay mapped, in huge pages where the system has them. Steady state: no allocation at all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace accrue {

class BufferPool {
 public:
  /// An uninitialised CPU tensor. Its memory comes back to the pool when the last tensor on it is gone.
  /// Thread: any. Errors: throws std::bad_alloc.
  at::Tensor take(at::IntArrayRef sizes, at::ScalarType type);
  at::Tensor take_like(const at::Tensor& other) { return take(other.sizes(), other.scalar_type()); }

  std::int64_t mapped_bytes() const;  ///< held from the system, used and idle
  std::int64_t mappings() const;      ///< how often memory was requested from the system since the start

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

/// The process's pool; it outlives every tensor.
BufferPool& activation_pool();

}  // namespace accrue
