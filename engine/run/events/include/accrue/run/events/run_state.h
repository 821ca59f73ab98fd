// SPDX-License-Identifier: Apache-2.0
// States of a run, for the supervisor, the window and the command line.
#pragma once

#include <optional>
#include <string_view>

namespace accrue {

enum class RunState { idle, preflight, starting, running, paused, degraded, restarting, stopping, failed, finished };
std::string_view to_string(RunState state);
std::optional<RunState> run_state_from(std::string_view name);

/// Whether a run will produce no more events.
inline bool is_over(RunState state) {
  return state == RunState::failed || state == RunState::finished;
}
inline bool is_live(RunState state) {
  return state != RunState::idle && state != RunState::preflight && !is_over(state);
}

}  // namespace accrue
