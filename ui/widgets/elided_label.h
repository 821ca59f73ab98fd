// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace accrue::ui {

/// One line of text, shortened with an ellipsis if it does not fit; the tooltip shows all of it.
class ElidedLabel : public QLabel {
  Q_OBJECT

 public:
  explicit ElidedLabel(QWidget* parent = nullptr, Qt::TextElideMode mode = Qt::ElideRight);
  void setFullText(const QString& text);
  QString fullText() const { return full_; }
  QSize minimumSizeHint() const override;
  QSize sizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void elide();

  QString full_;
  Qt::TextElideMode mode_;
};

}  // namespace accrue::ui
