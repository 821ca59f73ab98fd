// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/fields/spec.h"

class QLabel;
class QSlider;

namespace accrue::ui {

struct DockPanel;
class MemoryBar;
class PreflightRunner;
class RunControl;
class RunLibrary;
class RunSeries;
class SpecDocument;

/// The planner dock, before Run: memory of the fullest rank against the device's, the greatest traffic of a rank along
/// each axis, and the duration of the run, estimated from earlier runs. A slider divides the samples of an update
/// between micro-batch and N. After a run, the same bar also shows the measured values.
class PlannerPanel : public QWidget {
  Q_OBJECT

 public:
  PlannerPanel(SpecDocument* document, PreflightRunner* preflight, RunLibrary* library, RunControl* control,
               QWidget* parent = nullptr);
  DockPanel dock();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Call it when runs may have changed. Does nothing while the panel is hidden.
  void refresh();
  void connectSignals(const RunControl* control);
  void showPlan();
  /// The set-up with the micro-batch and N of the slider.
  RunSpec specAtSlider() const;
  void showSplits();
  void showSpec(const RunSpec& spec);
  /// A library's model is unknown before its first run: measured values replace the plan.
  void showLibraryModel(const std::optional<RankCost>& measured);
  void showMemory(const RunSpec& spec, const RankCost& cost, const std::optional<RankCost>& measured);
  void showMeasured(const RunSeries& run, const RankCost& measured);
  void showSent(const RunSpec& spec);
  void showTime(const RunSpec& spec);
  void commit();
  /// The newest run with the same memory needs.
  const RunSeries* measuredRun(const RunSpec& spec) const;
  std::vector<const RunSeries*> runs() const;

  SpecDocument* document_;
  PreflightRunner* preflight_;
  RunLibrary* library_;
  QLabel* title_;
  MemoryBar* memory_;
  QLabel* fits_;
  QLabel* split_title_;
  QSlider* split_;
  QLabel* split_ends_;
  QLabel* sent_;
  QLabel* time_;
  QLabel* measured_;
  QLabel* empty_;
  QWidget* content_;
  std::vector<std::int64_t> micros_;  ///< micro-batches that divide the samples, ascending
};

}  // namespace accrue::ui
