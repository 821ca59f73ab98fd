// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>

namespace accrue::ui {

/// A check box drawn as a switch, visible in either state and either theme.
class SwitchBox : public QCheckBox {
  Q_OBJECT

 public:
  using QCheckBox::QCheckBox;
  /// Distance from its left edge to its text.
  static int textOffset();
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool hitButton(const QPoint& at) const override;
};

}  // namespace accrue::ui
