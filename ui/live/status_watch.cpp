// SPDX-License-Identifier: GPL-3.0-or-later
#include "status_watch.h"

#include "close_guard.h"
#include "run_control.h"
#include "runs/runs_panel.h"
#include "series/frame_clock.h"
#include "setup/arithmetic_panel.h"
#include "status_row.h"

namespace accrue::ui {

namespace {

RunHost hostOf(const RunSeries* run, const RunControl& control, const CloseGuard& hosted) {
  if (run && run == control.run() && control.attached())
    return control.controls() ? RunHost::attached : RunHost::viewed;
  return run && is_live(run->state()) && !hosted.have(run) ? RunHost::unfollowed : RunHost::here;
}

}  // namespace

StatusWatch::StatusWatch(const Parts& parts, FrameClock* frames, QObject* parent) : QObject(parent), parts_(parts) {
  connect(frames, &FrameClock::refresh, this, &StatusWatch::refresh);
}

void StatusWatch::refresh() {
  const RunControl& control = *parts_.control;
  const RunSeries* run = parts_.runs->currentRun();
  if (!run && control.isLive()) run = control.run();
  const bool followed = run && run == control.run();
  // If no run is shown, the state is that of the set-up, whatever became of the run before.
  const RunState state = control.state() == RunState::preflight || followed ? control.state()
                         : run                                              ? run->state()
                                                                            : RunState::idle;
  parts_.row->refresh(run, state, hostOf(run, control, *parts_.hosted),
                      followed ? QString::fromStdString(control.ranks().backend()) : QString(),
                      parts_.arithmetic->obstacle());
  parts_.row->showOther(control.isLive() && !followed ? control.run() : nullptr);
}

}  // namespace accrue::ui
