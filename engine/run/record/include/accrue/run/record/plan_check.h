// SPDX-License-Identifier: Apache-2.0
// Comparison of the plan's figures with the ranks' counts (event "measured").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// One figure of ranks that are alike, in bytes.
struct PlanFigure {
  std::int64_t first_rank = 0;
  std::int64_t last_rank = 0;
  std::string figure;         ///< "parameters", "gradients", "optimizer", "activations", or "sent data" for an axis
  std::int64_t planned = 0;   ///< for sent data: in one update of a full window
  std::int64_t measured = 0;  ///< of the rank with the largest deviation from the plan
  bool known = true;          ///< false: no plan knows the model of a plug-in library

  double deviation_percent() const;
  /// Whether the plan was wrong by more than its tolerance: 10 %, for activations 25 %, and more than a page of memory.
  bool off() const;
  bool operator==(const PlanFigure&) const = default;
};

/// Returns the figures of all ranks that have reported, without those that are neither planned nor measured.
std::vector<PlanFigure> check_plan(const RunPlan& plan, const std::map<std::int64_t, Measured>& by_rank);
/// Returns a table for people, one line per figure; empty if there are none.
std::string plan_check_table(const std::vector<PlanFigure>& figures);

}  // namespace accrue
