// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "plots/figure_size.h"

class QDoubleSpinBox;
class QLabel;
class QPushButton;

namespace accrue::ui {

/// Dialog for a figure's size on paper and its font size; it stays until the figure can be drawn.
class FigureDialog : public QDialog {
  Q_OBJECT

 public:
  FigureDialog(const FigureSize& size, FigureCheck check, QWidget* parent = nullptr);
  FigureSize size() const;

 private:
  void showProblem();

  FigureCheck check_;
  QDoubleSpinBox* width_;
  QDoubleSpinBox* height_;
  QDoubleSpinBox* font_;
  QLabel* problem_;
  QPushButton* choose_ = nullptr;
};

}  // namespace accrue::ui
