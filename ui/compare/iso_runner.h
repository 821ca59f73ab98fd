// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "accrue/run/iso_batch.h"
#include "setup/plan_follower.h"

namespace accrue::ui {

/// The ways in which the current spec could make the samples of an update.
class IsoRunner : public PlanFollower {
  Q_OBJECT

 public:
  IsoRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent = nullptr);

  /// The newest answer; nullptr before the first and while the data cannot be read.
  const std::shared_ptr<const std::vector<IsoPlan>>& result() const { return result_; }

 private:
  std::shared_ptr<const std::vector<IsoPlan>> result_;
};

}  // namespace accrue::ui
