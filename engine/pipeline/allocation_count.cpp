// SPDX-License-Identifier: Apache-2.0
#include "pipeline/allocation_count.h"

#include <c10/core/Allocator.h>

#include <unordered_map>

namespace accrue {

/// Allocators report a block's address with its size, and a free with a negative one. The reports go to the profiler's
/// slot of the thread, so an active profiler of LibTorch sees none of a scope's memory.
struct AllocationCount::Ledger final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* block, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    if (bytes > 0) {
      blocks[block] = bytes;
      live += bytes;
    } else if (const auto known = blocks.find(block); known != blocks.end()) {  // others are older than the scope
      live -= known->second;
      blocks.erase(known);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::unordered_map<void*, std::int64_t> blocks;
  std::int64_t live = 0;
};

AllocationCount::AllocationCount(std::shared_ptr<Ledger> ledger)
    : ledger_(std::move(ledger)), guard_(c10::DebugInfoKind::PROFILER_STATE, ledger_) {}

std::shared_ptr<AllocationCount::Ledger> AllocationCount::make_ledger() {
  return std::make_shared<Ledger>();
}

std::int64_t AllocationCount::live() const {
  return ledger_->live;
}

}  // namespace accrue
