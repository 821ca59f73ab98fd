// SPDX-License-Identifier: GPL-3.0-or-later
// What a plan says about a run before its first step, for the plots and the form: the learning rate over every clock
// and the totals; the arithmetic in a sentence and the first windows. Walks the plan from update to update, which may
// take a while for very many: never on the GUI thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "accrue/run/run_plan.h"
#include "kit/clock.h"

namespace accrue::ui {

struct PlannedPoint {
  ClockPoint at;  ///< of an update
  double lr = 0.0;
};

struct PlanOutline {
  std::vector<PlannedPoint> points;  ///< one per update, fewer for very long plans; the last update is always there
  accrue::WindowTotals totals;
};

/// Empty if `cancelled` became true meanwhile. Thread: any.
PlanOutline outlineOf(const accrue::RunPlan& plan, const std::atomic<bool>& cancelled);

struct PlanSketch {
  std::string arithmetic;                ///< RunPlan::arithmetic()
  std::int64_t steps = 0;                ///< N
  std::vector<accrue::MicroPlan> first;  ///< micro-steps from the start of the run
  /// The micro-steps of the window that the first epoch ends with, if it is shorter than the others.
  std::vector<accrue::MicroPlan> epochTail;
};

/// Thread: any.
PlanSketch sketchOf(const accrue::RunPlan& plan);

}  // namespace accrue::ui
