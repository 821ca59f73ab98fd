// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QWidget>
#include <optional>

#include "accrue/run/plan/run_plan.h"
#include "series/run_series.h"

class QLabel;

namespace accrue::ui {

struct DockPanel;
class MemoryBar;
class PreflightRunner;
class RankCells;
class RunControl;

/// The ranks dock: the grid of the set-up, or of the focused run while it trains, and for one rank its place, its
/// groups and its memory.
class RankGridPanel : public QWidget {
  Q_OBJECT

 public:
  RankGridPanel(PreflightRunner* preflight, RunControl* control, QWidget* parent = nullptr);
  DockPanel dock();
  void setRun(RunSeries* run);
  /// The focused run while its grid is shown; nullptr while the set-up's is.
  const RunSeries* liveRun() const;
  /// Call at most once per frame.
  void refresh();
  void focusCells();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  struct Shown {
    std::int64_t memory_per_rank = 0;
    std::vector<RankCost> stages;
    bool cost_known = true;
  };
  void showPlan();
  void showRank();
  QString stateText(std::int64_t rank) const;

  PreflightRunner* preflight_;
  RunControl* control_;
  QPointer<RunSeries> run_;
  QLabel* title_;
  RankCells* cells_;
  QLabel* more_;
  QLabel* rank_;
  QLabel* groups_;
  QLabel* state_;
  MemoryBar* memory_;
  QLabel* share_;
  QWidget* detail_;
  QLabel* empty_;
  std::optional<Shown> shown_;
  QString shown_run_;  ///< folder of the run whose grid is shown; empty: the set-up's
};

}  // namespace accrue::ui
