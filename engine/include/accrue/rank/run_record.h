// SPDX-License-Identifier: Apache-2.0
// RunRecord: a program's own training loop as a run that the studio and accrue-run show, follow, hold and stop. Every
// rank reports; rank 0's process writes the record (spec.toml, events.jsonl, summary.json) and serves the run's control
// socket. The program computes as it likes: nothing here defines a step.
//
//   auto record = must(RunRecord::open(*meeting, *world, {.name = "mine", .steps = 4}));
//   while (record->begin_micro_step()) {
//     { const auto span = record->computes(ComputeKind::forward); loss = ...; }
//     record->end_micro_step(loss, samples);
//     if (window is full) {
//       record->scalar("accuracy", accuracy);
//       if (record->end_update({.lr = rate}).stop) break;
//     }
//     }
//   record->finish();
//
// All ranks make the same calls in the same order. Thread: the training thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "accrue/comm/rendezvous.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

struct RunRecordOptions {
  /// Run folder: new, empty, or that of an earlier run of the same program, which is continued. Empty: ACCRUE_RUN_DIR,
  /// which "accrue-run launch --out" sets; without it nothing is recorded.
  std::filesystem::path dir;
  std::string name;              ///< of the run
  std::int64_t steps = 1;        ///< N: micro-steps of a full window
  std::int64_t micro_batch = 1;  ///< samples of one rank's micro-step
  std::int64_t updates = 0;      ///< of the whole run; 0: unknown
  // Earlier progress, for a program that continues from its own checkpoint. Numbers continue from there.
  std::int64_t updates_done = 0;
  std::int64_t micro_steps_done = 0;
  std::int64_t samples_done = 0;  ///< over all ranks
};

/// Facts about an update that only the loop knows.
struct UpdateReport {
  std::optional<double> lr = {};         ///< used by the update
  std::optional<double> grad_norm = {};  ///< L2, before clipping
  double epoch = 0.0;                    ///< 0: unknown
  StepOutcome outcome = StepOutcome::updated;
};

/// Requests of the user to the loop at this place; equal on all ranks.
struct LoopRequests {
  bool checkpoint = false;  ///< save now, if the program can
  bool stop = false;        ///< end the loop after that
};

class RunRecord {
 public:
  /// Collective: the world. `world` contains all ranks and outlives the record. Errors, equal on all ranks: the folder
  /// contains something else or is in use (config), cannot be written (disk), a rank cannot reach rank 0 (rendezvous),
  /// a thread cannot be started (device).
  static Result<std::unique_ptr<RunRecord>> open(Rendezvous& meeting, Communicator& world,
                                                 const RunRecordOptions& options = {});
  /// An unfinished record reports that the run failed.
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  /// Waits here while a user has paused the run. Returns false if a user has stopped it, on all ranks before the same
  /// micro-step; drop the open window then.
  bool begin_micro_step();
  /// A span of computation of the micro-step or the update, from here to the end of the returned value's life.
  class Span;
  [[nodiscard]] Span computes(ComputeKind kind);
  /// `loss`: this rank's mean over its items; `items`: number of terms of the loss, 0: its samples.
  void end_micro_step(double loss, std::int64_t samples, std::int64_t items = 0);
  /// Ends the window of the micro-steps since the last call. The update's loss is the mean over the items of all ranks.
  /// Collective: the world.
  LoopRequests end_update(const UpdateReport& report = {});
  /// Adds a number to the next update or evaluation, under a name of the program: "accuracy". Rank 0's value counts.
  void scalar(const std::string& name, double value);
  /// Reports a loss on samples that are not trained on. Rank 0's value counts.
  void evaluation(double loss, std::int64_t batches, std::int64_t items = 0);
  /// Warns from rank 0 alone.
  void warn(std::string message, std::string what_to_do = {});
  /// Shows the calls of a communicator in the sync strip until the record ends. Takes the communicator's observer; the
  /// communicator must outlive the record.
  void observe(Communicator& communicator);
  /// Ends the run: finished, or stopped if a user requested it. Waits until the record is complete. Collective: the
  /// world.
  void finish();

  /// Whether anything is recorded.
  bool active() const;
  /// Returns the run's folder, on all ranks.
  const std::filesystem::path& dir() const;

 private:
  struct Impl;
  explicit RunRecord(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class [[nodiscard]] RunRecord::Span {
 public:
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  friend class RunRecord;
  Span(Impl& record, ComputeKind kind);
  Impl& record_;
  ComputeKind kind_;
  std::int64_t begin_ns_;
};

}  // namespace accrue
