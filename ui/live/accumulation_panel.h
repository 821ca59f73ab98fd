// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QPointer>
#include <QTimer>
#include <QWidget>
#include <chrono>
#include <cstdint>
#include <map>

#include "accrue/run/events/run_state.h"
#include "series/run_series.h"

class QGridLayout;
class QLabel;
class QScrollArea;

namespace accrue::ui {

struct DockPanel;
class ExactnessLamp;
class GradientPool;
class RunControl;
class StateChip;
struct RankStatus;

/// The window dock: the micro-steps in each rank's gradients, the end of the last window, and the size of the last
/// reduction.
class AccumulationPanel : public QWidget {
  Q_OBJECT

 public:
  explicit AccumulationPanel(RunControl* control, QWidget* parent = nullptr);
  DockPanel dock();
  /// The run whose window is shown.
  void setRun(RunSeries* run);
  /// Call at most once per frame.
  void refresh();
  /// Text of the pools: their contents, the end of the last window, and carried micro-steps.
  QString text() const;
  /// Interval between two pictures of a running window, each of one moment; the eye could not follow faster changes.
  static constexpr std::chrono::milliseconds shown_interval{66};
  /// Time for which tanks are shown reduced before they drain, so that a user who steps through a window sees the
  /// reduction.
  static constexpr std::chrono::milliseconds reduced_time{350};

 private:
  void buildFacts();
  const RankTracker& tracker() const;
  RunState state() const;
  /// Shows everything according to the events so far.
  void showAll();
  void showPools();
  void showLamp(const ExactnessLamp& lamp);
  /// Whether to show the tanks as reduced although they have drained since.
  bool showsReductionFirst();
  QString stateText() const;
  QString countText() const;
  QString phaseText() const;
  QLabel* addRow(QGridLayout* grid, const QString& name, const QString& object_name, const QString& help);
  QString syncText(const std::map<std::int64_t, RankStatus>& ranks) const;
  QString tokensText(const std::map<std::int64_t, RankStatus>& ranks) const;

  RunControl* control_;
  QPointer<RunSeries> run_;
  QLabel* title_;
  QLabel* count_;
  QLabel* phase_;
  GradientPool* pool_;
  QLabel* said_;
  QWidget* facts_;
  QLabel* empty_;
  QLabel* tokens_;
  QLabel* sync_;
  QLabel* norm_;
  QLabel* weights_;
  StateChip* lamp_;
  QLabel* lamp_text_;
  QScrollArea* scroll_ = nullptr;
  bool shows_reduction_ = false;  ///< of a window that has ended in the meantime
  QElapsedTimer since_shown_;
  QTimer later_;
  QElapsedTimer since_reduced_;
  std::int64_t reduced_window_ = 0;  ///< window whose tanks were last shown as reduced
};

}  // namespace accrue::ui
