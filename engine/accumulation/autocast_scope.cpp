// SPDX-License-Identifier: Apache-2.0
// The state of LibTorch's autocast as a scope. Its cache of cast weights is cleared when the outermost scope ends,
// because the optimizer changes the weights afterwards. It is a separate file because the header includes all of ATen.
#include "accrue/accumulation/autocast_scope.h"

#include <ATen/autocast_mode.h>

namespace accrue {

AutocastScope::AutocastScope(c10::ScalarType dtype, c10::DeviceType device)
    : device_(device),
      dtype_before_(at::autocast::get_autocast_dtype(device)),
      enabled_before_(at::autocast::is_autocast_enabled(device)) {
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
}

}  // namespace accrue
