// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "accrue/run/plugins.h"
#include "setup/plan_follower.h"

namespace accrue::ui {

/// What each plug-in costs and saves in the current spec, and why one cannot be switched on.
class PluginRunner : public PlanFollower {
  Q_OBJECT

 public:
  PluginRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent = nullptr);

  /// Empty before the first answer and while the data cannot be read.
  const std::optional<PluginComparison>& result() const { return result_; }

 private:
  std::optional<PluginComparison> result_;
};

}  // namespace accrue::ui
