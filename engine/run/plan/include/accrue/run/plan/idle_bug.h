// SPDX-License-Identifier: Apache-2.0
// Detection of a bug of the gallery that has no effect in a run.
#pragma once

#include <optional>
#include <string>

#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Reason why a bug has no effect in a run, and the key whose change would give it one.
struct IdleBug {
  std::string why;
  std::string key;  ///< empty if no single key would do
  std::string found;
  std::string expected;
  std::string fix;  ///< a value of that key; empty if only the user can choose one
};
/// Returns none if there is no bug, or if it has an effect somewhere in the run.
std::optional<IdleBug> idle_bug(const RunPlan& plan);

}  // namespace accrue
