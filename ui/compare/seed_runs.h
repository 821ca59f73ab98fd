// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "compared_runs.h"

namespace accrue::ui {

class SeedRunner;

/// The current set-up under several seeds, one after another: how much of a difference is chance.
class SeedRuns : public ComparedRuns {
  Q_OBJECT

 public:
  SeedRuns(SpecDocument* document, SeedRunner* seeds, RunQueue* queue, MessageBar* bar, QObject* parent = nullptr);

 protected:
  std::vector<Way> ways() const override;

 private:
  SeedRunner* seeds_;
};

}  // namespace accrue::ui
