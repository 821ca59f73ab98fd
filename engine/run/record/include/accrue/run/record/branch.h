// SPDX-License-Identifier: Apache-2.0
// A branch: a separate run that continues from another run's checkpoint, under a spec with a different layout, rate or
// length. The other run is only read, and may be training meanwhile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/window/checkpoint_mark.h"

namespace accrue {

/// Checkpoint at which a branch leaves its run.
struct BranchPoint {
  std::filesystem::path run_dir;
  std::string run_id;
  CheckpointMark checkpoint;
  RunSpec spec;  ///< of the run, with absolute paths of its data
  WindowShape window;
  LrCurve curve;
  std::string data_fingerprint;
  std::string weights_fingerprint;
  std::vector<PluginRecord> plugins;
  std::optional<Update> last;  ///< the update at the checkpoint, if the events contain it

  std::filesystem::path checkpoint_dir() const;
};

/// Reads only. `from`: a run folder, for its newest checkpoint, or the folder of one checkpoint
/// (<run>/checkpoints/step-<n>, or .../best). Errors (config): not a run, no checkpoint, N was set by hand before it.
Result<BranchPoint> read_branch_point(const std::filesystem::path& from);

/// Returns an error for each changed key that a branch must keep, with the reason; none if `to` can continue from
/// `from`.
std::vector<Finding> check_branch(const RunSpec& from, const RunSpec& to);
/// Does the same for a plan from any folder, and compares data by absolute path. Another place in the data is an error
/// too. A rate that jumps because its schedule follows the run's length is a warning.
std::vector<Finding> check_branch(const BranchPoint& from, const RunPlan& plan);
/// Names the keys that may differ, in a sentence.
std::string_view branch_keys_help();
/// Whether an update of the branch has the same samples in different micro-steps: its place is then counted anew.
bool recounts_micro_steps(const RunSpec& from, const RunSpec& to);

/// Copies the checkpoint into the folder of a run that has none, whole or not at all. Errors (disk).
Result<void> copy_checkpoint(const BranchPoint& from, const std::filesystem::path& run_dir);

}  // namespace accrue
