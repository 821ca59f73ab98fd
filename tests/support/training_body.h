// SPDX-License-Identifier: Apache-2.0
// A rank body that trains a spec through train_run, without a supervisor: its channel follows a script and records. It
// reports event lines as a supervisor would see them, and at the end the outcome.
#pragma once

#include <QTemporaryDir>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/preflight/run_order.h"
#include "support/rank_harness.h"

namespace accrue::test {

/// A training and its events on the way, passed to the ranks as arguments.
struct TrainingScript {
  std::string spec;                   ///< TOML
  std::vector<std::string> set = {};  ///< and then "key=value", as accrue-run's --set
  std::string base_dir;               ///< where relative data paths start
  std::string run_dir;                ///< empty: no checkpoints, no final weights
  std::string resume_from;            ///< "newest", "step-N" or empty
  bool interactive = false;
  bool cuda = false;                    ///< the plan, made for the CPU, is run on CUDA devices
  std::int64_t stop_before = 0;         ///< the gate says stop before this micro-step
  std::int64_t checkpoint_request = 0;  ///< rank 0 requests a checkpoint at this update's boundary
  std::int64_t stop_request = 0;        ///< the last rank requests checkpoint and stop there
  std::int64_t full_disk_update = 0;    ///< no file may grow past 1 KiB at this update's boundary
  std::int64_t die_at_update = 0;       ///< every rank ends without a report once this update has been reported
  std::int64_t kill_before = 0;         ///< the last rank is killed by a signal before this micro-step
  std::int64_t steps_request = 0;  ///< the last rank requests `requested_steps` at this update's boundary, the first
                                   ///< hears of it a boundary later
  std::int64_t requested_steps = 0;
  std::int64_t branched_at = -1;        ///< the run is a branch, from the checkpoint of this update
  std::vector<LengthChange> steps_set;  ///< changes of N recorded by the run that is continued
};

/// One rank's run, read back.
struct TrainedRank {
  std::vector<RunEvent> events;
  std::string outcome;  ///< finished, stopped, or "error <code>"
  std::string message;  ///< of an error
  std::string weights_sha256;
  std::int64_t updates = 0;
  std::int64_t holds = 0;  ///< times it paused on its own initiative
  RankOutcome process;

  template <typename Body>
  std::vector<Body> all() const {
    std::vector<Body> bodies;
    for (const RunEvent& event : events)
      if (const auto* body = std::get_if<Body>(&event.body)) bodies.push_back(*body);
    return bodies;
  }
  /// Whether a warning has these words.
  bool warned(const std::string& words) const;
  std::string text() const;  ///< for QVERIFY2
};

/// Fails the test function unless every rank finished.
#define VERIFY_FINISHED(ranks) \
  for (const accrue::test::TrainedRank& each : ranks) QVERIFY2(each.outcome == "finished", each.text().c_str())

/// A folder for a run, which goes with the test.
class RunFolder {
 public:
  operator std::string() const { return folder_.path().toStdString(); }  // NOLINT(google-explicit-constructor)
  std::filesystem::path operator/(const char* name) const { return std::filesystem::path(std::string(*this)) / name; }

 private:
  QTemporaryDir folder_;
};

/// The order that a supervisor would write for it. Throws with the findings if the spec is refused.
RunOrder order_for(const TrainingScript& script);

/// Register as {"train", train_body}.
int train_body(RankContext& rank);

/// Trains on `world` ranks and waits for all.
std::vector<TrainedRank> train(const TrainingScript& script, int world,
                               std::chrono::milliseconds deadline = std::chrono::seconds(120));

}  // namespace accrue::test
