// SPDX-License-Identifier: GPL-3.0-or-later
// Outline of a plan for the plots and the form, before the run's first step: the learning rate over every clock and the
// totals, and the arithmetic in a sentence with the first windows. Walks the plan from update to update, which may be
// slow for very many: never on the GUI thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "accrue/run/plan/run_plan.h"
#include "kit/clock.h"

namespace accrue::ui {

struct PlannedPoint {
  ClockPoint at;  ///< of an update
  double lr = 0.0;
};

struct PlanOutline {
  std::vector<PlannedPoint> points;  ///< one per update, fewer for very long plans; always includes the last update
  accrue::WindowTotals totals;
};

/// Empty if `cancelled` became true meanwhile. Thread: any.
PlanOutline outlineOf(const accrue::RunPlan& plan, const std::atomic<bool>& cancelled);

struct PlanSketch {
  std::string arithmetic;                ///< RunPlan::arithmetic()
  std::int64_t steps = 0;                ///< N
  std::vector<accrue::MicroPlan> first;  ///< micro-steps from the start of the run
  /// Micro-steps of the window at the end of the first epoch, if it is shorter than the others.
  std::vector<accrue::MicroPlan> epochTail;
};

/// Thread: any.
PlanSketch sketchOf(const accrue::RunPlan& plan);

}  // namespace accrue::ui
