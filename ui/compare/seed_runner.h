// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/run_plan.h"
#include "setup/plan_follower.h"

namespace accrue::ui {

struct SeedPlan {
  std::int64_t seed = 0;
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;
};

/// The current spec under several seeds: its own and those after it.
class SeedRunner : public PlanFollower {
  Q_OBJECT

 public:
  SeedRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent = nullptr);
  void setCount(int count) { *count_ = count; }
  /// The newest answer; nullptr before the first and while the data cannot be read.
  const std::shared_ptr<const std::vector<SeedPlan>>& result() const { return result_; }

 private:
  SeedRunner(SpecDocument* document, PreflightRunner* preflight, std::shared_ptr<std::atomic<int>> count,
             QObject* parent);

  std::shared_ptr<std::atomic<int>> count_;
  std::shared_ptr<const std::vector<SeedPlan>> result_;
};

}  // namespace accrue::ui
