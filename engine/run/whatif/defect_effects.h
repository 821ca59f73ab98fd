// SPDX-License-Identifier: Apache-2.0
// What each difference from the originals would mean for one plan, in its numbers.
#pragma once

#include <optional>
#include <string_view>

#include "accrue/run/upstream_defects.h"

namespace accrue {

/// What a row of the page means: a pure function of the plan, and the replay by which a run does as upstream.
struct DefectMeaning {
  std::string_view id;
  DefectEffect (*effect)(const RunPlan&);
  std::optional<Replay> replay;
};

/// nullptr if no difference has that id.
const DefectMeaning* meaning_of(std::string_view id);

}  // namespace accrue
