// SPDX-License-Identifier: Apache-2.0
// Names of the trainer's state in a checkpoint. They do not depend on ranks, buckets or shards, except for state of one
// rank or one data-parallel replica:
//
//   parameters.<p>               optimizer.<state>.<p>, optimizer.master.<p>, optimizer.step.<p>: by parameter
//   buffers.<b>                  of a user's model: buffers and frozen parameters
//   rank.<r>.rng.cpu             of one rank
//   replica.<d>.gradients.<p>    of an open window: sums of this replica's micro-steps so far,
//   replica.<d>.compensation.<p> the rounding errors of these sums,
//   replica.<d>.buffers.<b>      the buffers before the replicas take those of the first,
//   replica.<d>.tally            and the contents of the micro-steps;
//   rank.<r>.reached             of a library's model: the parameters that these have reached, a byte each,
//   rank.<r>.reports             and the reports of a library's train step on this rank (StepReports::text())
//
// Padding rows of a token embedding, which are not part of the model (model_share.h), are in none of them.
//
// Under sequence parallelism a rank's gradients of undivided parameters are a part of the replica's. They are stored as
// rank.<r>.gradients.<p> and rank.<r>.compensation.<p>.
#pragma once

#include <vector>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/run/base/result.h"
#include "train/training.h"

namespace accrue {

/// Purpose of a list of tensors. A rank reads all tensors that it holds; one of several holders writes.
enum class Purpose { read, write };
/// Returns parameters, buffers and optimizer state: views of the live memory.
std::vector<PlacedTensor> shared_tensors(Training& training, Purpose purpose);
/// Returns the open window's gradients, their compensation if any, and the replica's buffers: views of the live memory.
std::vector<PlacedTensor> window_tensors(Training& training, Purpose purpose);
/// Returns its tally and the counts of the whole window, as a copy.
PlacedTensor tally_tensor(const Training& training, const OpenWindow& open);
/// Returns state of a plug-in library's model on this rank, as copies: the parameters that the open window has reached,
/// and its train step's reports, if any.
std::vector<PlacedTensor> library_tensors(const Training& training);
/// Returns the default generator's state, as a copy.
PlacedTensor generator_tensor(const Training& training);

/// Whether the checkpoint contains the gradients of its open window.
bool has_open_window(const Training& training, const CheckpointReader& checkpoint);

/// Checks that everything that restore_state() would read exists, with the right shape and type and possible values;
/// changes nothing. Errors: protocol (damaged: an older one is tried), config (of another model, every differing tensor
/// named; or taken inside a window by another number of replicas).
Result<void> check_state(Training& training, const CheckpointReader& checkpoint);
/// Reads parameters, optimizer state, generator and, if saved, the open window, from a checkpoint that passed
/// check_state(). Errors: disk; the state is then mixed and must not be used.
Result<void> restore_state(Training& training, const CheckpointReader& checkpoint);

}  // namespace accrue
