// SPDX-License-Identifier: Apache-2.0
// When the trainer saves and how it continues; checkpointing_state.h says what under which names.
#pragma once

#include "accrue/run/result.h"
#include "train/training.h"

namespace accrue {

/// What this run's checkpoints say they are of.
CheckpointIdentity identity_of(const Training& training);

/// Continues from the order's resume_from, if any: the newest checkpoint that verifies from there backwards, or the
/// start where there is none at all. Refused ones are set aside; they and what makes the continuation not bit-exact
/// become warnings. Collective: the world.
/// Errors: protocol (all checkpoints are refused, each by name; they are left as they are), data (changed since it was
/// saved), config (another model: every differing tensor is named, and nothing is loaded; another format), disk.
Result<void> resume(Training& training);

/// Whether the schedule asks for a checkpoint on this boundary.
bool checkpoint_due(const Training& training);
/// Whether it asks for one after this micro-step, inside its window, and the dialect takes them there (K15).
bool checkpoint_due_inside(const Training& training, const MicroPlan& plan);

/// Saves at a boundary, unless this update is saved already or the run has no folder. A failure is a warning, which
/// says what is left; `last`: no other checkpoint follows in this run. Collective: the world.
void save(Training& training, bool last);
/// Saves after a micro-step that ends no window: where K15 is anywhere with the gradients and the tally of the window
/// so far, else without them, as the dialect's original does. Collective: the world.
void save_inside(Training& training, const OpenWindow& open);

}  // namespace accrue
