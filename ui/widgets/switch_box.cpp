// SPDX-License-Identifier: GPL-3.0-or-later
#include "switch_box.h"

#include <QPainter>

#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr QSize track(28, 16);

}  // namespace

int SwitchBox::textOffset() {
  return track.width() + space::inGroup;
}

QSize SwitchBox::sizeHint() const {
  return {textOffset() + fontMetrics().horizontalAdvance(text()) + space::base,
          std::max(track.height(), fontMetrics().height()) + space::base};
}

bool SwitchBox::hitButton(const QPoint& at) const {
  return QRect(QPoint(), QSize(sizeHint().width(), height())).contains(at);
}

void SwitchBox::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const int top = (height() - track.height()) / 2;
  const QRectF box(0.5, top + 0.5, track.width() - 1, track.height() - 1);
  const QColor edge = !isEnabled() ? colors.hairline : isChecked() ? colors.accent : colors.muted;
  painter.setPen(edge);
  painter.setBrush(isChecked() ? edge : colors.surface);
  painter.drawRoundedRect(box, box.height() / 2, box.height() / 2);
  const double side = box.height() - 6;
  const QRectF knob(isChecked() ? box.right() - side - 3 : box.left() + 3, box.top() + 3, side, side);
  painter.setPen(Qt::NoPen);
  painter.setBrush(isChecked() ? colors.surface : edge);
  painter.drawEllipse(knob);
  const QRect label = rect().adjusted(textOffset(), 0, 0, 0);
  painter.setPen(isEnabled() ? colors.text : colors.muted);
  painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, text());
  if (!hasFocus()) return;
  painter.setPen(colors.accent);
  painter.drawLine(label.left(), label.bottom(), label.left() + fontMetrics().horizontalAdvance(text()),
                   label.bottom());
}

}  // namespace accrue::ui
