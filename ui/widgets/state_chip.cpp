// SPDX-License-Identifier: GPL-3.0-or-later
#include "state_chip.h"

#include <QAccessible>
#include <QPainter>

#include "kit/text_scale.h"
#include "kit/theme.h"

namespace accrue::ui {

StateChip::StateChip(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("stateChip"));
  setFont(textFont(TextSize::body, QFont::DemiBold));
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void StateChip::setLook(RunState tone, const QString& word, const QIcon& icon) {
  if (tone == state_ && word == word_) return;
  state_ = tone;
  word_ = word;
  icon_ = icon;
  setAccessibleName(word);
  QAccessibleEvent event(this, QAccessible::NameChanged);
  QAccessible::updateAccessibility(&event);
  updateGeometry();
  update();
}

QSize StateChip::sizeHint() const {
  const int text = fontMetrics().horizontalAdvance(word_);
  return {space::inGroup + iconSide() + space::base + text + space::inGroup + space::base,
          fontMetrics().height() + space::inGroup};
}

void StateChip::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  const QColor tone = stateColor(colors, state_);
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(mixed(tone, palette().window().color(), 0.16));
  painter.drawRoundedRect(rect(), space::base, space::base);
  const QRect icon(space::inGroup, (height() - iconSide()) / 2, iconSide(), iconSide());
  icon_.paint(&painter, icon);
  painter.setPen(palette().windowText().color());
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(colors.accent);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), space::base, space::base);
    painter.setPen(palette().windowText().color());
  }
  painter.drawText(rect().adjusted(icon.right() + 1 + space::base, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, word_);
}

}  // namespace accrue::ui
