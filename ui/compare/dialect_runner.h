// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "accrue/run/dialect_comparison.h"
#include "setup/plan_follower.h"

namespace accrue::ui {

/// What each dialect would do with the current spec.
class DialectRunner : public PlanFollower {
  Q_OBJECT

 public:
  DialectRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent = nullptr);

  /// The newest comparison; nullptr before the first and while the data cannot be read.
  const std::shared_ptr<const DialectComparison>& result() const { return result_; }

 private:
  std::shared_ptr<const DialectComparison> result_;
};

}  // namespace accrue::ui
