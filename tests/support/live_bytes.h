// SPDX-License-Identifier: Apache-2.0
// Bytes of tensors that a thread has made on the CPU while this lives and that are still there, those of the activation
// pool included.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace accrue::test {

class LiveBytes {
 public:
  std::int64_t now() const { return counter_->now; }
  std::int64_t most() const { return counter_->most; }
  void forget_most() { counter_->most = counter_->now; }

 private:
  struct Counter final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
      now += size;
      most = std::max(most, now);
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::int64_t now = 0;
    std::int64_t most = 0;
  };
  std::shared_ptr<Counter> counter_ = std::make_shared<Counter>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, counter_};
};

}  // namespace accrue::test
