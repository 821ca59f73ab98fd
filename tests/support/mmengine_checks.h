// SPDX-License-Identifier: Apache-2.0
// What the tests of MMEngine's wrappers share.
#pragma once

#include <QString>
#include <QtGlobal>
#include <cmath>

#include "accrue/comm/grad_sync.h"

namespace accrue::test {

/// Equal to 1e-12, or both numbers are printed.
inline bool near(double value, double expected) {
  if (std::abs(value - expected) <= 1e-12) return true;
  qWarning("%.17g is not %.17g", value, expected);
  return false;
}

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
