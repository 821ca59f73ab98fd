// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_actions.h"

namespace accrue::ui {

RunActions enabledActions(RunState state) {
  using enum RunAction;
  switch (state) {
    case RunState::idle:
      return {edit, run, resume};
    case RunState::preflight:
      return {stop};
    case RunState::starting:
    case RunState::restarting:
      return {stop, kill};
    case RunState::running:
    case RunState::degraded:
      return {edit, pause, step, stop, kill, checkpoint, stopUnsaved, setSteps};
    case RunState::paused:
      return {edit, proceed, step, stop, kill, checkpoint, stopUnsaved, setSteps};
    case RunState::stopping:
      return {kill};
    case RunState::failed:
    case RunState::finished:
      return {edit, run, resume};
  }
  return {};
}

}  // namespace accrue::ui
