// SPDX-License-Identifier: Apache-2.0
// What can be asked of a live run: by the thread that owns its host, and by other programs through its control socket.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "accrue/run/result.h"

namespace accrue {

enum class HostVerb {
  status,  ///< nothing but an answer
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
  shut_down  ///< the host is being destroyed: end the run by the ladder; never travels through the socket
};

/// How far a step goes. The last micro-step of a window ends with its backward, before the gradients are reduced; an
/// update ends when they are cleared.
enum class StepUnit { phase, micro_step, update };

struct HostCommand {
  HostVerb verb = HostVerb::status;
  std::int64_t steps = 0;  ///< set_steps: N from the next window on
};

/// Asks the process that trains the run in this folder, and answers the state it was in then; its effects arrive
/// as events. Waits at most a few seconds. Errors: not a run, no process trains it (config), no answer
/// comes (peer_lost), or the reason of the refusal (config).
Result<std::string> ask_run(const std::filesystem::path& run_dir, const HostCommand& command);

}  // namespace accrue
