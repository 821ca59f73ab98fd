// SPDX-License-Identifier: Apache-2.0
// A branch: a run of its own that goes on from a checkpoint of another, under a spec that differs in layout, rate,
// length. The other run is only read, and may be training meanwhile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/event_reader.h"
#include "accrue/run/findings.h"
#include "accrue/run/plugin_facts.h"
#include "accrue/run/result.h"
#include "accrue/run/run_plan.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// Where a branch leaves its run.
struct BranchPoint {
  std::filesystem::path run_dir;
  std::string run_id;
  CheckpointMark checkpoint;
  RunSpec spec;  ///< of the run, with the place of its data in full
  WindowShape window;
  LrCurve curve;
  std::string data_fingerprint;
  std::vector<PluginRecord> plugins;
  std::optional<Update> last;  ///< the update at the checkpoint, as far as the events know it

  std::filesystem::path checkpoint_dir() const;
};

/// Reads only. `from`: a run folder, for its newest checkpoint, or the folder of one checkpoint
/// (<run>/checkpoints/step-<n>). Errors (config): not a run, no checkpoint, N was set by hand before it.
Result<BranchPoint> read_branch_point(const std::filesystem::path& from);

/// An error for each key that differs and that a branch has to keep, with the reason; none if `to` can go on where
/// `from` stands.
std::vector<Finding> check_branch(const RunSpec& from, const RunSpec& to);
/// The same of a plan made anywhere, whose data are compared by their place in full. Another place in the data is an
/// error, too; a rate that jumps because its schedule follows the run's length is a warning.
std::vector<Finding> check_branch(const BranchPoint& from, const RunPlan& plan);
/// The keys that may differ, in a sentence.
std::string_view branch_keys_help();
/// An update of the branch has the samples that it had, in other micro-steps: its place is counted anew.
bool recounts_micro_steps(const RunSpec& from, const RunSpec& to);

/// Copies the checkpoint into the folder of a run that has none; it is there whole or not at all. Errors (disk).
Result<void> copy_checkpoint(const BranchPoint& from, const std::filesystem::path& run_dir);

}  // namespace accrue
