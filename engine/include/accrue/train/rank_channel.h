// SPDX-License-Identifier: Apache-2.0
// Channel of a rank: destination of its events and source of its commands. It is the supervisor's socket, or standard
// output under a foreign launcher.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "accrue/run/events/current_operation.h"
#include "accrue/run/events/run_event.h"

namespace accrue {

/// Required action of the training thread before its next micro-step.
struct Gate {
  bool stop = false;  ///< drop the open window and end
};

/// Actions of a boundary besides training; the boundary's reduction combines them over the ranks.
struct BoundaryRequests {
  bool checkpoint = false;
  bool stop = false;       ///< after the checkpoint, if any; also set if the supervisor is gone
  std::int64_t steps = 0;  ///< N from here on; 0: unchanged; the largest request counts
};

class RankChannel {
 public:
  virtual ~RankChannel() = default;
  /// Numbers (seq), stamps and queues an event; never blocks on a slow reader. Arrays (micro-steps, operations, sync)
  /// are merged, and flushed every 33 ms and before any other kind. Thread: training.
  virtual void send(EventBody body) = 0;
  /// Sets the place of training (heartbeat). Cheap: a few relaxed stores. Thread: training.
  virtual void progress(const char* phase, std::int64_t update, std::int64_t micro_step) = 0;
  /// Counts the collectives begun (heartbeat). Equally cheap. Thread: training.
  virtual void collective_begun() {}
  /// Current operation of that phase (heartbeat).
  CurrentOperation& operation() { return operation_; }
  /// Called before each micro-step, in a pipeline before the first of a window; holds here while paused. Before it
  /// holds, it calls `catch_up`, which reports progress so far. Thread: training.
  virtual Gate before_micro_step(std::int64_t micro_step, const std::function<void()>& catch_up) = 0;
  /// Called after each phase of a micro-step and of its boundary, in a run without pipeline stages; holds here while
  /// the ranks are stepped by phases. Thread: training.
  virtual void after_phase(StepPhase, const std::function<void()>& /*catch_up*/) {}
  virtual BoundaryRequests boundary_requests() = 0;
  /// Pauses this rank by itself after the current micro-step (non-finite values). Thread: training.
  virtual void hold_here() = 0;
  /// Sends waiting events and closes; called once at the end.
  virtual void close() = 0;

 private:
  CurrentOperation operation_;
};

}  // namespace accrue
