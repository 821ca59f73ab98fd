// SPDX-License-Identifier: Apache-2.0
// The plan's figures beside what the ranks counted (event "measured").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "accrue/run/run_event.h"
#include "accrue/run/run_plan.h"

namespace accrue {

/// One figure of ranks that are alike, in bytes.
struct PlanFigure {
  std::int64_t first_rank = 0;
  std::int64_t last_rank = 0;
  std::string figure;         ///< "parameters", "gradients", "optimizer", "activations", or "sent data" for an axis
  std::int64_t planned = 0;   ///< what is sent: in one update of a full window
  std::int64_t measured = 0;  ///< of the rank that is farthest from the plan
  bool known = true;          ///< false: no plan knows the model, which is a plug-in library's

  double deviation_percent() const;
  /// The plan was wrong by more than it claims: 10 %, activations 25 %, and more than a page of memory.
  bool off() const;
  bool operator==(const PlanFigure&) const = default;
};

/// The figures of all ranks that have reported. What was neither planned nor measured is left out.
std::vector<PlanFigure> check_plan(const RunPlan& plan, const std::map<std::int64_t, Measured>& by_rank);
/// As a table for people, a line each; empty where there is nothing to show.
std::string plan_check_table(const std::vector<PlanFigure>& figures);

}  // namespace accrue
