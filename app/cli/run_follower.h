// SPDX-License-Identifier: Apache-2.0
// Waits for a run to end, shows its progress, and turns signals into commands.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/host/engine_host.h"
#include "progress_view.h"

namespace accrue::cli {

/// Meaning of an interrupt (Ctrl+C).
enum class OnInterrupt {
  stop,   ///< the first: a checkpoint at the end of the update, then the end; a second: kill
  detach  ///< leave the run to its own process
};

struct FollowOptions {
  ProgressView::Style style = ProgressView::Style::lines;
  std::int64_t planned_updates = 0;
  OnInterrupt on_interrupt = OnInterrupt::stop;
  bool needs_control = false;         ///< exit with the status of a lost peer once commands cannot reach the run
  std::function<void()> on_training;  ///< called once, when all ranks have joined
};

/// Blocks the signals that follow() handles, for all later threads; call it before a host exists.
void block_handled_signals();
/// A descriptor that is readable once one of them has arrived.
OwnedFd handled_signals();
/// Takes the next of them, if there is one.
std::optional<int> take_signal(const OwnedFd& signals);

/// Follows until the run ends (or is left); returns the exit status.
int follow(EngineHost& host, const FollowOptions& options);

}  // namespace accrue::cli
