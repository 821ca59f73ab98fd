// SPDX-License-Identifier: Apache-2.0
// Saving and continuing a training. checkpointing_state.h defines the names of the state.
#pragma once

#include "accrue/run/base/result.h"
#include "train/training.h"

namespace accrue {

/// Identity of this run's checkpoints.
CheckpointIdentity identity_of(const Training& training);

/// Continues from the order's resume_from, if any: the newest checkpoint that verifies from there backwards, or the
/// start if there is none at all. Refused ones are set aside. They become warnings, as does anything that makes the
/// continuation not bit-exact. Collective: the world.
/// Errors: protocol (all checkpoints are refused, each by name, and left unchanged), data (changed since the save),
/// config (another model: every differing tensor is named, and nothing is loaded; another format), disk.
Result<void> resume(Training& training);

/// Whether a checkpoint is due on this boundary.
bool checkpoint_due(const Training& training);
/// Whether one is due after this micro-step, inside its window, and the dialect allows it (K15).
bool checkpoint_due_inside(const Training& training, const MicroPlan& plan);

/// Saves at a boundary, unless the run has no folder or this update is already saved; again if it has turned out to be
/// the best one. A failure is a warning that says what remains. `last`: no other checkpoint follows in this run.
/// Collective: the world.
void save(Training& training, bool last);
/// Saves after a micro-step that ends no window: if K15 is anywhere, with the gradients and the tally of the open
/// window, else without them, like the dialect's original. Collective: the world.
void save_inside(Training& training, const OpenWindow& open);

}  // namespace accrue
