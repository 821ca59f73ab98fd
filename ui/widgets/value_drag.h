// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QAbstractSpinBox;
class QLabel;

namespace accrue::ui {

/// Event filter that steps a number when its name is dragged sideways, like a slider: right is up, left is down.
/// Dependent views update during the drag.
class ValueDrag : public QObject {
  Q_OBJECT

 public:
  static void install(QLabel* name, QAbstractSpinBox* number);
  /// Logical pixels per step.
  static constexpr int step_width = 12;

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  ValueDrag(QLabel* name, QAbstractSpinBox* number);
  bool mayStep() const;
  void dragTo(int x);

  QAbstractSpinBox* number_;
  bool dragging_ = false;
  int from_ = 0;   ///< x of step zero: that of the press, until a limit is reached
  int steps_ = 0;  ///< steps from there
};

}  // namespace accrue::ui
