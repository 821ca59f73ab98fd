// SPDX-License-Identifier: GPL-3.0-or-later
// StepQueue: queue of steps requested during another step, so that every key press makes one step.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "series/engine_bridge.h"

namespace accrue::ui {

/// A value; it sends nothing itself.
class StepQueue {
 public:
  using Step = void (EngineBridge::*)();

  /// Whether a step is in progress, until the ranks hold again.
  bool isUnderWay() const { return stage_ != Stage::none; }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  /// A run is being started that holds before its first micro-step.
  void beginStart() { stage_ = Stage::starting; }
  bool isStarting() const { return stage_ == Stage::starting; }
  /// A step was sent to a run that is paused.
  void begin() { stage_ = Stage::sent; }
  /// Adds a step behind the current one. A key that is held down fills the queue, which then takes no more.
  void add(Step step);
  void clear();
  /// Returns the step to send now, if these events end the one before it.
  std::optional<Step> take(const std::vector<RunEvent>& events);

 private:
  enum class Stage { none, starting, sent, moving };
  void takeState(RunState state);

  Stage stage_ = Stage::none;
  std::deque<Step> waiting_;
};

}  // namespace accrue::ui
