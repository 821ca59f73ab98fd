// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>

namespace accrue::ui {

/// A line of text with a chevron that folds what lies below it.
class FoldButton : public QAbstractButton {
  Q_OBJECT

 public:
  FoldButton(const QString& object_name, const QString& text, QWidget* parent = nullptr);
  /// Behind the text, in the accent colour, as far as there is room: something about what is folded. Empty: nothing.
  void setMark(const QString& mark);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString mark_;
};

}  // namespace accrue::ui
