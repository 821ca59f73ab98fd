// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "plots/figure_size.h"

class QDoubleSpinBox;

namespace accrue::ui {

/// Asks for a figure's size on paper and the size of its font.
class FigureDialog : public QDialog {
  Q_OBJECT

 public:
  explicit FigureDialog(const FigureSize& size, QWidget* parent = nullptr);
  FigureSize size() const;

 private:
  QDoubleSpinBox* width_;
  QDoubleSpinBox* height_;
  QDoubleSpinBox* font_;
};

}  // namespace accrue::ui
