// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of MMEngine's wrappers.
#pragma once

#include "accrue/comm/grad_sync.h"
#include "support/refusals.h"

namespace accrue::test {

/// A reducer that only counts.
struct CountedSync final : GradSync {
  bool sync_enabled() const override { return enabled; }
  void set_sync_enabled(bool value) override { enabled = value; }
  void finish() override { reductions += enabled ? 1 : 0; }
  bool enabled = true;
  int reductions = 0;
};

}  // namespace accrue::test
