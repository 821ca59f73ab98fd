// SPDX-License-Identifier: GPL-3.0-or-later
// StepQueue: steps that are asked for while one is under way are carried out after it, one by one, so that as many
// presses of a key make as many steps.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "accrue/run/run_event.h"
#include "series/engine_bridge.h"

namespace accrue::ui {

/// A value; it sends nothing itself.
class StepQueue {
 public:
  using Step = void (EngineBridge::*)();

  /// Until the ranks hold again.
  bool isUnderWay() const { return stage_ != Stage::none; }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  /// A run is being started that holds before its first micro-step.
  void beginStart() { stage_ = Stage::starting; }
  bool isStarting() const { return stage_ == Stage::starting; }
  /// A step was sent to a run that is paused.
  void begin() { stage_ = Stage::sent; }
  /// Waits for the one that is under way. A key that is held down fills the queue, which then takes no more.
  void add(Step step);
  void clear();
  /// The step to be sent now: the one before it has ended with these events.
  std::optional<Step> take(const std::vector<RunEvent>& events);

 private:
  enum class Stage { none, starting, sent, moving };
  void takeState(RunState state);

  Stage stage_ = Stage::none;
  std::deque<Step> waiting_;
};

}  // namespace accrue::ui
