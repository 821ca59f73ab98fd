// SPDX-License-Identifier: Apache-2.0
// RunRecord: a program's own training loop as a run that the studio and accrue-run show, follow, hold and stop. Every
// rank reports what it does; rank 0's process writes the record (spec.toml, events.jsonl, summary.json) and serves the
// run's control socket. The program computes as it likes: nothing here decides what a step is.
//
//   auto record = must(RunRecord::open(*meeting, *world, {.name = "mine", .steps = 4}));
//   while (record->begin_micro_step()) {
//     { const auto span = record->computes(ComputeKind::forward); loss = ...; }
//     record->end_micro_step(loss, samples);
//     if (window is full) {
//       record->scalar("accuracy", accuracy);
//       if (record->end_update({.lr = rate}).stop) break;
//     }
//   }
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
#include "accrue/run/run_event.h"

namespace accrue {

struct RunRecordOptions {
  /// The run folder, new or empty, or that of the same program's earlier run, which is continued. Empty:
  /// ACCRUE_RUN_DIR, which "accrue-run launch --out" sets; where that is not set either nothing is recorded.
  std::filesystem::path dir;
  std::string name;              ///< of the run
  std::int64_t steps = 1;        ///< N: micro-steps of a full window
  std::int64_t micro_batch = 1;  ///< samples of one rank's micro-step
  std::int64_t updates = 0;      ///< of the whole run; 0 = not known
  // Where a program goes on from a checkpoint of its own: what was done before. Numbers go on from there.
  std::int64_t updates_done = 0;
  std::int64_t micro_steps_done = 0;
  std::int64_t samples_done = 0;  ///< over all ranks
};

/// What the loop knows of an update and the record cannot.
struct UpdateReport {
  std::optional<double> lr = {};         ///< that the update used
  std::optional<double> grad_norm = {};  ///< L2, before clipping
  double epoch = 0.0;                    ///< 0 where it is not known
  StepOutcome outcome = StepOutcome::updated;
};

/// What a user wants from the loop at this place; equal on all ranks.
struct LoopRequests {
  bool checkpoint = false;  ///< to be saved now, if the program can
  bool stop = false;        ///< after that the loop is to end
};

class RunRecord {
 public:
  /// Collective: the world. `world` has all ranks and outlives the record. Errors, the same on all ranks: the folder
  /// holds something else or is in use (config), cannot be written (disk), a rank cannot reach rank 0 (rendezvous),
  /// a thread cannot be started (device).
  static Result<std::unique_ptr<RunRecord>> open(Rendezvous& meeting, Communicator& world,
                                                 const RunRecordOptions& options = {});
  /// A record that was not finished says that the run failed.
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  /// Waits here while a user has paused the run. False: a user has stopped it, on all ranks before the same micro-step;
  /// what of a window is done is to be dropped.
  bool begin_micro_step();
  /// A stretch of computation of the micro-step or the update, from here to the end of the returned value's life.
  class Span;
  [[nodiscard]] Span computes(ComputeKind kind);
  /// `loss`: this rank's mean over its items; `items`: what the loss sums over, 0 = its samples.
  void end_micro_step(double loss, std::int64_t samples, std::int64_t items = 0);
  /// Ends the window that the micro-steps since the last call make. The update's loss is the mean over the items of all
  /// ranks. Collective: the world.
  LoopRequests end_update(const UpdateReport& report = {});
  /// A number with the next update or evaluation, under a name of the program's: "accuracy". Rank 0's counts.
  void scalar(const std::string& name, double value);
  /// A loss on samples that are not trained on. Rank 0's counts.
  void evaluation(double loss, std::int64_t batches, std::int64_t items = 0);
  /// From rank 0 alone.
  void warn(std::string message, std::string what_to_do = {});
  /// Shows the calls of a communicator in the sync strip until the record ends. It takes the communicator's observer,
  /// and the communicator outlives the record.
  void observe(Communicator& communicator);
  /// The run is over: finished, or stopped where a user asked for that. Waits until the record is complete. Collective:
  /// the world.
  void finish();

  /// False: nothing is recorded.
  bool active() const;
  /// Of the run; on all ranks.
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
