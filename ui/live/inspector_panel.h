// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QTableWidget;

namespace accrue::ui {

struct DockPanel;
class RunControl;

/// The inspector dock: where a paused run stands, what each phase of the micro-step has come to on each rank, and the
/// first weights and gradients as they are now.
class InspectorPanel : public QWidget {
  Q_OBJECT

 public:
  explicit InspectorPanel(RunControl* control, QWidget* parent = nullptr);
  DockPanel dock();
  /// Call at most once per frame. Nothing is filled in while the panel is not shown.
  void refresh();
  /// Whether its dock can be seen: one behind another tab cannot, though it is visible to Qt.
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
