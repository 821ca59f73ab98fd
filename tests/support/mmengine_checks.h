// SPDX-License-Identifier: Apache-2.0
// What the tests of MMEngine's wrappers share.
#pragma once

#include <QString>

#include "accrue/comm/grad_sync.h"

namespace accrue::test {

/// What `call` throws as text; empty where it returns.
template <typename Thrown, typename Call>
QString thrown_by(Call&& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return QString::fromUtf8(error.what());
  }
  return {};
}

/// A reducer that only counts.
struct CountedSync final : GradSync {
  bool sync_enabled() const override { return enabled; }
  void set_sync_enabled(bool value) override { enabled = value; }
  void finish() override { reductions += enabled ? 1 : 0; }
  bool enabled = true;
  int reductions = 0;
};

}  // namespace accrue::test
