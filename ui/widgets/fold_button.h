// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractButton>

namespace accrue::ui {

/// A line of text with a chevron that folds the area below it.
class FoldButton : public QAbstractButton {
  Q_OBJECT

 public:
  FoldButton(const QString& object_name, const QString& text, QWidget* parent = nullptr);
  /// Shows a mark after the text, in the accent colour, about the folded area; `brief` replaces it if there is no room.
  /// Empty: none.
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
