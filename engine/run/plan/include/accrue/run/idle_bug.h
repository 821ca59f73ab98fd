// SPDX-License-Identifier: Apache-2.0
// Whether a bug of the gallery has anything to act on in a run.
#pragma once

#include <optional>
#include <string>

#include "accrue/run/run_plan.h"

namespace accrue {

/// Why a bug changes nothing in a run, and the key whose change would let it act.
struct IdleBug {
  std::string why;
  std::string key;  ///< empty where no one key would do
  std::string found;
  std::string expected;
  std::string fix;  ///< a value of that key; empty where only the user can choose one
};
/// Nothing where there is no bug, or it acts somewhere in the run.
std::optional<IdleBug> idle_bug(const RunPlan& plan);

}  // namespace accrue
