// SPDX-License-Identifier: GPL-3.0-or-later
// Limits for the studio's programs of this folder. Each measured value is printed beside its limit, and a program fails
// if one is exceeded: a check by hand on an idle machine, never a test.
#pragma once

#include <cstdio>

namespace accrue::bench {

class Limits {
 public:
  /// Milliseconds that `what` may take.
  void most(const char* what, double measured, double limit) {
    const bool kept = measured <= limit;
    kept_ = kept_ && kept;
    std::printf("%-46s %7.2f ms, at most %5.0f ms: %s\n", what, measured, limit, kept ? "kept" : "EXCEEDED");
  }
  int exit_status() const { return kept_ ? 0 : 1; }

 private:
  bool kept_ = true;
};

}  // namespace accrue::bench
