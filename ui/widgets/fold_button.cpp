// SPDX-License-Identifier: GPL-3.0-or-later
#include "fold_button.h"

#include <QPainter>
#include <QStyleOptionFocusRect>

#include "kit/text_scale.h"
#include "kit/theme.h"

namespace accrue::ui {

FoldButton::FoldButton(const QString& object_name, const QString& text, QWidget* parent) : QAbstractButton(parent) {
  setObjectName(object_name);
  setText(text);
  setAccessibleName(text);
  setCheckable(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_Hover);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void FoldButton::setMark(const QString& mark, const QString& brief) {
  if (mark == mark_) return;
  mark_ = mark;
  brief_ = brief;
  setAccessibleDescription(mark);
  setToolTip(mark);
  updateGeometry();
  update();
}

int FoldButton::markLeft() const {
  return iconSide() + space::base + fontMetrics().horizontalAdvance(text()) + space::inGroup;
}

QSize FoldButton::sizeHint() const {
  const int mark = brief_.isEmpty() ? 0 : QFontMetrics(textFont(TextSize::small)).horizontalAdvance(brief_);
  return {markLeft() + mark, fontMetrics().height() + space::inGroup};
}

void FoldButton::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  const QString chevron = isChecked() ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right");
  themedIcon(chevron).paint(&painter, QRect(0, (height() - iconSide()) / 2, iconSide(), iconSide()));
  painter.setPen(underMouse() ? colors.accent : colors.text);
  const QRect label = rect().adjusted(iconSide() + space::base, 0, 0, 0);
  painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, text());
  if (!mark_.isEmpty()) {
    painter.save();
    painter.setPen(colors.accent);
    painter.setFont(textFont(TextSize::small));
    const QRect room = rect().adjusted(markLeft(), 0, 0, 0);
    const bool whole = painter.fontMetrics().horizontalAdvance(mark_) <= room.width();
    painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter, whole ? mark_ : brief_);
    painter.restore();
  }
  if (!hasFocus()) return;
  painter.setPen(colors.accent);
  painter.drawRect(rect().adjusted(0, 1, -1, -2));
}

}  // namespace accrue::ui
