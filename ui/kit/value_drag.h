// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QAbstractSpinBox;
class QLabel;

namespace accrue::ui {

/// Dragging the name of a number sideways steps the number: up to the right, down to the left, as a slider would, and
/// what depends on it is drawn while it moves.
class ValueDrag : public QObject {
  Q_OBJECT

 public:
  static void install(QLabel* name, QAbstractSpinBox* number);
  /// Logical pixels for one step.
  static constexpr int step_width = 12;

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  ValueDrag(QLabel* name, QAbstractSpinBox* number);
  bool mayStep() const;
  void dragTo(int x);

  QAbstractSpinBox* number_;
  bool dragging_ = false;
  int from_ = 0;   ///< x of no step: that of the press, until a limit is met
  int steps_ = 0;  ///< taken from there
};

}  // namespace accrue::ui
