// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QTableWidget;

namespace accrue::ui {

struct DockPanel;
class RunControl;

/// The inspector dock: place of a paused run, result of each phase of the micro-step on each rank, and the current
/// first weights and gradients.
class InspectorPanel : public QWidget {
  Q_OBJECT

 public:
  explicit InspectorPanel(RunControl* control, QWidget* parent = nullptr);
  DockPanel dock();
  /// Call at most once per frame. Nothing is filled in while the panel is not shown.
  void refresh();
  /// Sets whether its dock can be seen: one behind another tab cannot, though Qt calls it visible.
  void setShown(bool shown);
  void focusPhases();

 private:
  void showPhases();
  void showValues();

  RunControl* control_;
  bool shown_ = false;
  QLabel* empty_;
  QLabel* place_;
  QTableWidget* phases_;
  QLabel* slice_;
  QTableWidget* values_;
};

}  // namespace accrue::ui
