// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>

namespace accrue::ui {

/// A line of text with a chevron that folds what lies below it.
class FoldButton : public QAbstractButton {
  Q_OBJECT

 public:
  FoldButton(const QString& object_name, const QString& text, QWidget* parent = nullptr);
  /// Behind the text, in the accent colour: something about what is folded, or where there is no room for it, its
  /// short form. Empty: nothing.
  void setMark(const QString& mark, const QString& brief);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int markLeft() const;

  QString mark_;
  QString brief_;
};

}  // namespace accrue::ui
