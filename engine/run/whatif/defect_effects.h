// SPDX-License-Identifier: Apache-2.0
// Effect of each difference from the originals on one plan, in its numbers.
#pragma once

#include <optional>
#include <string_view>

#include "accrue/run/whatif/upstream_defects.h"

namespace accrue {

/// Effect of a row of the manual's page, as a pure function of the plan, and the replay that makes a run behave like
/// upstream.
struct DefectMeaning {
  std::string_view id;
  DefectEffect (*effect)(const RunPlan&);
  std::optional<Replay> replay;
};

/// Returns nullptr if no difference has that id.
const DefectMeaning* meaning_of(std::string_view id);

}  // namespace accrue
