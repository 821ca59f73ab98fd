// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "accrue/run/iso_batch.h"
#include "compared_runs.h"

namespace accrue::ui {

class IsoRunner;

/// "micro 2 x N 8 x 2 ranks"
QString wayText(const IsoWay& way);

/// Short runs of one product in some of its ways.
class IsoRuns : public ComparedRuns {
  Q_OBJECT

 public:
  IsoRuns(SpecDocument* document, IsoRunner* plans, RunQueue* queue, MessageBar* bar, QObject* parent);
  /// Starts those ways that the function wants and preflight accepts.
  void startWhere(std::function<bool(const IsoPlan&)> wanted);

 private:
  std::vector<Way> ways() const override;

  IsoRunner* plans_;
  std::function<bool(const IsoPlan&)> wanted_;
};

}  // namespace accrue::ui
