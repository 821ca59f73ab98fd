// SPDX-License-Identifier: Apache-2.0
// While it lives, operators that gain from it run in a lower precision on this thread. Scopes nest.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace accrue::mmengine {

class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, c10::ScalarType dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  c10::ScalarType dtype_before_;
  bool enabled_before_;
};

}  // namespace accrue::mmengine
