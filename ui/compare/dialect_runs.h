// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <vector>

#include "accrue/run/dialect_comparison.h"
#include "compared_runs.h"

namespace accrue::ui {

class DialectRunner;

/// The first error for which a dialect cannot run the spec; empty if it can.
QString refusalOf(const DialectPlan& answer);

/// "Run all five": the current spec under the rules of each dialect.
class DialectRuns : public ComparedRuns {
  Q_OBJECT

 public:
  DialectRuns(SpecDocument* document, DialectRunner* dialects, RunQueue* queue, MessageBar* bar, QObject* parent);

 private:
  std::vector<Way> ways() const override;

  DialectRunner* dialects_;
};

}  // namespace accrue::ui
