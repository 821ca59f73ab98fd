// SPDX-License-Identifier: Apache-2.0
// While it lives, suitable operators run in a lower precision on this thread. Use it around the forward and the loss,
// not the backward. Restores the previous state; scopes nest. Cached casts of weights are dropped when the outermost
// scope ends, before an update makes them stale.
// Source: the role of torch.autocast. Thread: the training thread.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace accrue {

class AutocastScope {
 public:
  explicit AutocastScope(c10::ScalarType dtype, c10::DeviceType device = c10::DeviceType::CPU);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  c10::ScalarType dtype_before_;
  bool enabled_before_;
};

}  // namespace accrue
