// SPDX-License-Identifier: Apache-2.0
// Checkpoints under <run>/checkpoints/step-N/: one shard-r.safetensors per rank and manifest.json, made durable before
// one rename commits them. Protocol: write to .step-N.<random>.part, hash while writing, fdatasync, manifest last,
// fsync the folder, rename, fsync the parent; never overwrite a committed folder. Retention renames to .trash-* first
// and never drops the last two or the last finite one. Collective: data axis, at a boundary.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/checkpoint/tensor_archive.h"
#include "accrue/comm/communicator.h"
#include "accrue/run/accumulation_window.h"
#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/result.h"

namespace accrue {

/// What besides tensors a run needs to go on bit-identically.
struct TrainingCursor {
  std::int64_t micro_step = 0;  ///< done, those of an open window included
  std::int64_t update = 0;      ///< boundaries passed
  std::int64_t schedule_position = 0;
  std::int64_t optimizer_steps = 0;
  std::int64_t samples = 0;  ///< over all ranks
  std::int64_t tokens = 0;
  double seconds = 0.0;
  double loss = 0.0;  ///< of the last update
  bool finite = true;
  WindowPosition window;          ///< exactly; an empty one (an older checkpoint) follows from micro_step
  double loss_scale = 0.0;        ///< float16's dynamic scale; 0 = none
  std::int64_t scale_growth = 0;  ///< updates since it last changed
  double frozen_lr = -1.0;        ///< replayed defect: the rate at which a resumed run stays; negative = none
  CheckpointMark mark() const { return {update, window.position}; }
  bool operator==(const TrainingCursor&) const = default;
};

struct CheckpointIdentity {
  std::string spec_sha256;
  std::string data_fingerprint;
  std::int64_t world = 1;
  std::int64_t threads_per_rank = 1;
  std::string torch_version;
  std::string cpu_capability;  ///< e.g. "AVX2"
};

struct CheckpointContent {
  TrainingCursor cursor;
  NamedTensors replicated;  ///< parameters and optimizer state per parameter, under module names; rank 0 writes them
  NamedTensors
      local;  ///< this rank's own, names beginning "local.": RNG states; of an open window also gradients and tally
};

struct CommittedCheckpoint {
  std::string name;  ///< "step-100"
  std::int64_t bytes = 0;
  double seconds = 0.0;
  std::optional<Error> retention;  ///< why older checkpoints were left where they are; on rank 0
};

/// Errors (disk) leave the previous checkpoints as they were; training may go on. All ranks get the same answer.
Result<CommittedCheckpoint> save_checkpoint(const std::filesystem::path& run_dir, const CheckpointContent& content,
                                            const CheckpointIdentity& identity, std::int64_t keep,
                                            Communicator& data_axis);

struct LoadedCheckpoint {
  std::string name;
  CheckpointContent content;
  CheckpointIdentity identity;
  std::vector<std::string> refused;        ///< newer checkpoints that did not verify, each with the reason
  std::vector<std::string> not_bit_exact;  ///< what differs from this run (threads, world size, ...)
};
/// The newest checkpoint that verifies: of all (name "newest"), or from the named one backwards ("step-100"). Every
/// file of a checkpoint is verified on every rank, so ranks that see the same disk take the same one. Empty name in the
/// answer: there is none. Errors: data (the fingerprint differs), config (no name of a checkpoint).
Result<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& run_dir, const std::string& name,
                                         std::int64_t rank, const CheckpointIdentity& identity);

}  // namespace accrue
