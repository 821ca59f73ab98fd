// SPDX-License-Identifier: GPL-3.0-or-later
#include "fold_button.h"

#include <QPainter>
#include <QStyleOptionFocusRect>

#include "style/theme.h"

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

void FoldButton::setMark(const QString& mark) {
  if (mark == mark_) return;
  mark_ = mark;
  setAccessibleDescription(mark);
  update();
}

QSize FoldButton::sizeHint() const {
  return {space::icon + space::base + fontMetrics().horizontalAdvance(text()) + space::inGroup,
          fontMetrics().height() + space::inGroup};
}

void FoldButton::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  const QString chevron = isChecked() ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right");
  themedIcon(chevron).paint(&painter, QRect(0, (height() - space::icon) / 2, space::icon, space::icon));
  painter.setPen(underMouse() ? colors.accent : colors.text);
  const QRect label = rect().adjusted(space::icon + space::base, 0, 0, 0);
  painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, text());
  if (!mark_.isEmpty()) {
    painter.save();
    painter.setPen(colors.accent);
    const int left = fontMetrics().horizontalAdvance(text()) + space::inGroup;
    painter.setFont(textFont(TextSize::small));
    const QRect room = label.adjusted(left, 0, 0, 0);
    painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(mark_, Qt::ElideRight, room.width()));
    painter.restore();
  }
  if (!hasFocus()) return;
  painter.setPen(colors.accent);
  painter.drawRect(rect().adjusted(0, 1, -1, -2));
}

}  // namespace accrue::ui
