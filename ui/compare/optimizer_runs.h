// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "compared_runs.h"

namespace accrue::ui {

class OptimizerRunner;

/// "Run all seven optimizers": the current spec under each of Colossal-AI's optimizers.
class OptimizerRuns : public ComparedRuns {
  Q_OBJECT

 public:
  OptimizerRuns(SpecDocument* document, OptimizerRunner* optimizers, RunQueue* queue, MessageBar* bar, QObject* parent);

 private:
  std::vector<Way> ways() const override;

  OptimizerRunner* optimizers_;
};

}  // namespace accrue::ui
