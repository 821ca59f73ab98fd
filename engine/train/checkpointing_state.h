// SPDX-License-Identifier: Apache-2.0
// The trainer's state under the names that a checkpoint keeps it by. None of them says anything of ranks, buckets or
// shards, but what belongs to one rank or to one data-parallel replica alone:
//
//   parameters.<p>               optimizer.<state>.<p>, optimizer.master.<p>, optimizer.step.<p>: by parameter
//   buffers.<b>                  of a model of one's own: buffers and frozen parameters
//   rank.<r>.rng.cpu             of one rank
//   replica.<d>.gradients.<p>    of an open window: what this replica's micro-steps have summed so far,
//   replica.<d>.compensation.<p> what the sums have rounded off,
//   replica.<d>.buffers.<b>      what the buffers are before the replicas take those of the first,
//   replica.<d>.tally            and what the micro-steps held;
//   rank.<r>.reached             of a library's model: which parameters these have reached, a byte each,
//   rank.<r>.reports             and what a library's train step has reported on this rank (StepReports::text())
//
// Of a token embedding whose vocabulary is padded, the rows that are no part of the model (model_share.h) are in none
// of them.
//
// Under sequence parallelism a rank's gradients of undivided parameters are a part of the replica's, and are kept as
// rank.<r>.gradients.<p> and rank.<r>.compensation.<p>.
#pragma once

#include <vector>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/run/result.h"
#include "train/training.h"

namespace accrue {

/// What tensors are listed for: a rank reads all that it holds, and of what several hold, one writes.
enum class Purpose { read, write };
/// Parameters, buffers and optimizer state: views of the live memory.
std::vector<PlacedTensor> shared_tensors(Training& training, Purpose purpose);
/// The open window's gradients, their compensation where there is one, and the replica's buffers: views of the live
/// memory.
std::vector<PlacedTensor> window_tensors(Training& training, Purpose purpose);
/// Its tally and what the whole of it was counted to hold, as a copy.
PlacedTensor tally_tensor(const Training& training, const OpenWindow& open);
/// Of a plug-in library's model on this rank: which parameters the open window has reached, and what its train step has
/// reported in it, if anything. Copies.
std::vector<PlacedTensor> library_tensors(const Training& training);
/// The default generator's state, as a copy.
PlacedTensor generator_tensor(const Training& training);

/// Whether the checkpoint kept the gradients of its open window.
bool has_open_window(const Training& training, const CheckpointReader& checkpoint);

/// Whether everything that restore_state() would read is there, of the right shape and type and with values that can
/// be; nothing is changed. Errors: protocol (damaged: an older one is tried), config (of another model, every
/// differing tensor named; or taken inside a window by another number of replicas).
Result<void> check_state(Training& training, const CheckpointReader& checkpoint);
/// Reads parameters, optimizer state, generator and, where it was kept, the open window. For a checkpoint that passed
/// check_state(). Errors: disk; the state is then half of each and not to be used.
Result<void> restore_state(Training& training, const CheckpointReader& checkpoint);

}  // namespace accrue
