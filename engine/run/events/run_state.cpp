// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/run_state.h"

#include <array>

namespace accrue {
namespace {
constexpr std::array<std::string_view, 10> state_names = {"idle",     "preflight",  "starting", "running", "paused",
                                                          "degraded", "restarting", "stopping", "failed",  "finished"};
}  // namespace

std::string_view to_string(RunState state) {
  return state_names[static_cast<std::size_t>(state)];
}

std::optional<RunState> run_state_from(std::string_view name) {
  for (std::size_t i = 0; i < state_names.size(); ++i)
    if (state_names[i] == name) return static_cast<RunState>(i);
  return std::nullopt;
}

}  // namespace accrue
