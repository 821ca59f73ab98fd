// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/run_state.h"

#include "accrue/run/base/name_of.h"

namespace accrue {

std::string_view to_string(RunState state) {
  return name_of<RunState::finished>(state, {"idle", "preflight", "starting", "running", "paused", "degraded",
                                             "restarting", "stopping", "failed", "finished"});
}

std::optional<RunState> run_state_from(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(RunState::finished); ++i)
    if (to_string(static_cast<RunState>(i)) == name) return static_cast<RunState>(i);
  return std::nullopt;
}

}  // namespace accrue
