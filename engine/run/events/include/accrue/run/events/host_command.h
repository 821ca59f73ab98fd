// SPDX-License-Identifier: Apache-2.0
// Commands to a live run, from the thread that owns its host or from other programs through its control socket.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/run/base/result.h"

namespace accrue {

enum class HostVerb {
  status,  ///< only returns the state
  pause,
  proceed,
  step_micro_step,
  step_update,
  stop,
  checkpoint,
  checkpoint_and_stop,
  kill,
  set_steps,
  step_phase,
  shut_down  ///< the host is being destroyed: end the run by the stop ladder; never sent through the socket
};

/// Length of a step. The last micro-step of a window ends with its backward, before the gradients are reduced; an
/// update ends when they are cleared.
enum class StepUnit { phase, micro_step, update };

struct HostCommand {
  HostVerb verb = HostVerb::status;
  std::int64_t steps = 0;  ///< set_steps: N from the next window on
};

/// Sends a command to the process that trains the run in this folder, and returns its state at that time. The effects
/// arrive as events. Waits at most a few seconds. Errors: not a run, or no process trains it (config); no answer
/// (peer_lost); or the reason of a refusal (config).
Result<std::string> ask_run(const std::filesystem::path& run_dir, const HostCommand& command);

}  // namespace accrue
