// SPDX-License-Identifier: Apache-2.0
// Counter of tensor bytes that a code section leaves allocated: the memory that a forward keeps for its backward.
// LibTorch's allocators, on any device, and the activation pool report to the scope of their thread; outside a scope
// there is no counting and no cost.
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <memory>

namespace accrue {

/// Scope that counts allocated bytes; scopes do not nest. Thread: the creating one; tensors that other threads allocate
/// or free are not seen.
class AllocationCount {
 public:
  AllocationCount() : AllocationCount(make_ledger()) {}

  /// Bytes allocated since the scope began and not freed.
  std::int64_t live() const;

 private:
  struct Ledger;
  explicit AllocationCount(std::shared_ptr<Ledger> ledger);
  static std::shared_ptr<Ledger> make_ledger();

  std::shared_ptr<Ledger> ledger_;
  c10::DebugInfoGuard guard_;
};

}  // namespace accrue
