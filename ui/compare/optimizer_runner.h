// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "accrue/run/optimizer_comparison.h"
#include "setup/plan_follower.h"

namespace accrue::ui {

/// The current spec under each of Colossal-AI's optimizers.
class OptimizerRunner : public PlanFollower {
  Q_OBJECT

 public:
  OptimizerRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent = nullptr);

  /// The newest answer; nullptr before the first and while the data cannot be read.
  const std::shared_ptr<const std::vector<OptimizerPlan>>& result() const { return result_; }

 private:
  std::shared_ptr<const std::vector<OptimizerPlan>> result_;
};

}  // namespace accrue::ui
