// SPDX-License-Identifier: GPL-3.0-or-later
#include "parting_mark.h"

#include <QPainter>

#include "kit/theme.h"
#include "plot_canvas.h"
#include "qcp.h"

namespace accrue::ui {

namespace {

/// Maximum number of chips; one more counts the rest.
constexpr int most_chips = 3;
constexpr int chip_gap = space::base;

}  // namespace

PartingMark::PartingMark(PlotCanvas* canvas) : QWidget(canvas), canvas_(canvas) {
  setObjectName(QStringLiteral("partingMark"));
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFont(textFont(TextSize::small));
  hide();
}

void PartingMark::setParting(const std::optional<ClockPoint>& at, const QStringList& chips) {
  at_ = at;
  chips_ = chips.mid(0, most_chips);
  if (chips.size() > most_chips) chips_ << tr("and %n more", nullptr, static_cast<int>(chips.size()) - most_chips);
  setAccessibleName(at ? tr("The curves part here: %1").arg(chips.join(QStringLiteral(", "))) : QString());
  if (!at) hide();
  update();
}

void PartingMark::place(Clock clock) {
  if (!at_) return;
  const QRect axes = canvas_->axisRect()->rect();
  const double pixel = canvas_->x()->coordToPixel((*at_)[clock]);
  const bool inside = pixel >= axes.left() && pixel <= axes.right();
  if (inside && (axes != geometry() || pixel != pixel_ + axes.left())) {
    setGeometry(axes);
    pixel_ = pixel - axes.left();
    update();
  }
  setVisible(inside);
}

void PartingMark::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.setPen(QPen(colors.muted, 1, Qt::DotLine));
  painter.drawLine(QPointF(pixel_, 0), QPointF(pixel_, height()));
  painter.setRenderHint(QPainter::Antialiasing);
  int top = space::base;
  for (const QString& chip : chips_) {
    const QSize size(fontMetrics().horizontalAdvance(chip) + 2 * space::inGroup, fontMetrics().height() + space::base);
    const bool right = pixel_ + space::base + size.width() <= width();
    const QRectF area(QPointF(right ? pixel_ + space::base : pixel_ - space::base - size.width(), top), size);
    painter.setPen(colors.hairline);
    painter.setBrush(colors.surface);
    painter.drawRoundedRect(area, space::base, space::base);
    painter.setPen(colors.text);
    painter.drawText(area, Qt::AlignCenter, chip);
    top += size.height() + chip_gap;
  }
}

}  // namespace accrue::ui
