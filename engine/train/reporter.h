// SPDX-License-Identifier: Apache-2.0
// Event reporting of the trainer: fills events in, keeps the run's clock, and turns collectives into sync entries.
// Thread: training.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/comm/mesh.h"
#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/train/rank_channel.h"

namespace accrue {

/// Result of a micro-step on this rank.
struct MicroResult {
  double mean_loss = 0.0;
  std::int64_t items = 0;
  std::int64_t samples = 0;
  std::int64_t end_ns = 0;      ///< of its last operation, CLOCK_MONOTONIC
  std::int64_t compute_ns = 0;  ///< duration of its operations
};

class Reporter {
 public:
  /// Observes all axes until destruction.
  Reporter(const RunOrder& order, const Mesh& mesh, RankChannel& channel, at::Device device);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void ready();
  /// Sets the current place of training, for heartbeats and sync entries. `update` counts from 1.
  void phase(const char* name, std::int64_t update, std::int64_t micro_step);
  void phase(const char* name) { phase(name, update_, micro_step_); }
  /// Sets the operation of a window that this phase is about.
  void begins(const PipelineOperation& operation, std::int64_t micro_step);
  /// Between computes(true) and computes(false) a span of computation runs, and exchanges inside it are not compute
  /// time.
  void computes(bool computing) { computing_ = computing; }
  void micro_step(const MicroPlan& plan, const MicroResult& result);
  /// Reports a span of computation, CLOCK_MONOTONIC in ns. It counts as compute time.
  void operation(ComputeKind kind, std::int64_t micro_step, std::int64_t chunk, std::int64_t begin_ns,
                 std::int64_t end_ns);
  /// Sends from rank 0 alone, because the others hold the same numbers.
  void from_first(EventBody body);
  void warn_first(std::string class_name, std::string message, std::string what_to_do);
  void gauge_if_due();
  /// Call after each boundary. `counts`: the window was full and ended in an update, so bytes sent since the last
  /// boundary count.
  void window_done(bool counts);
  /// Number of windows that counted.
  std::int64_t full_updates() const { return full_updates_; }
  /// Sends `held`, with the bytes sent in the counted windows. No transfer may be in progress.
  void measured(Measured held);

  /// Adds time under one of Megatron-LM's names.
  void spend(const char* timer, std::int64_t ns) { timers_[timer] += static_cast<double>(ns) * 1e-9; }
  /// Returns this rank's seconds since the last call, under Megatron-LM's names: "forward-compute", "all-grads-sync",
  /// "forward-send".
  std::map<std::string, double> take_timers() { return std::exchange(timers_, {}); }

  bool first() const { return mesh_.speaks(); }
  /// Seconds of training: those of the resumed checkpoint and those since.
  double seconds() const;
  void resumed(const TrainingCursor& cursor);
  /// Time in operations since the ranks started, without exchanges inside them.
  double compute_seconds() const { return static_cast<double>(compute_ns_) * 1e-9; }

 private:
  /// Bytes of one communicator, in training alone: evaluations, checkpoints and the start are not counted.
  struct Sent {
    AxisTraffic traffic;
    std::int64_t calls = 0;
  };
  using SentByAxis = std::map<std::string, Sent>;

  void collective(const CollectiveRecord& record);

  const std::int64_t origin_ns_;
  const std::int64_t chunks_;
  const Mesh& mesh_;
  RankChannel& channel_;
  at::Device device_;
  std::int64_t update_ = 0;
  std::int64_t micro_step_ = 0;
  bool computing_ = false;
  std::int64_t begin_ns_;
  double seconds_before_ = 0.0;
  std::int64_t compute_ns_ = 0;
  std::int64_t gauge_ns_;
  bool trains_ = false;                       ///< in this phase
  std::optional<CollectivePurpose> purpose_;  ///< of all exchanges of this phase
  std::int64_t phase_ns_ = 0;
  SentByAxis sent_;  ///< in the windows that counted
  SentByAxis of_window_;
  std::int64_t window_ns_ = 0;  ///< end of the last window, CLOCK_MONOTONIC
  bool last_counts_ = false;
  std::int64_t full_updates_ = 0;
  std::map<std::string, double> timers_;
};

}  // namespace accrue
