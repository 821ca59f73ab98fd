// SPDX-License-Identifier: GPL-3.0-or-later
#include "difference_plot.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "kit/number_text.h"
#include "kit/theme.h"

namespace accrue::ui {

DifferencePlot::DifferencePlot(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("differencePlot"));
  setFont(tabularFont(TextSize::small));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setPoints({});
}

void DifferencePlot::setPoints(const std::vector<SharedPoint>& points) {
  positions_.clear();
  differences_.clear();
  for (const SharedPoint& point : points) {
    positions_.push_back(static_cast<double>(point.at));
    differences_.push_back(point.second - point.first);
  }
  extent_ = 0.0;
  for (const double difference : differences_)
    if (std::isfinite(difference)) extent_ = std::max(extent_, std::abs(difference));
  setAccessibleName(positions_.empty() ? tr("Difference of the losses: no point yet")
                    : extent_ == 0.0   ? tr("Difference of the losses: 0 everywhere")
                                       : tr("Difference of the losses: at most %1").arg(valueText(extent_, 3)));
  setVisible(!positions_.empty());
  update();
}

void DifferencePlot::setRuns(const QString& first, const QString& second, Clock clock) {
  //: The second run's loss less the first one's: "Difference of the losses, N = 16 − N = 4, over samples"
  runs_ = (clock == Clock::sample ? tr("Difference of the losses, %1 \u2212 %2, over samples")
                                  : tr("Difference of the losses, %1 \u2212 %2, over updates"))
              .arg(second, first);
  setAccessibleDescription(runs_);
  setToolTip(runs_);
  update();
}

QSize DifferencePlot::sizeHint() const {
  return {400, 7 * fontMetrics().height()};
}

QSize DifferencePlot::minimumSizeHint() const {
  return {160, sizeHint().height()};
}

void DifferencePlot::paintEvent(QPaintEvent*) {
  if (positions_.empty()) return;
  const ThemeColors colors = themeColors(palette());
  const int line = fontMetrics().height();
  const QString above = QStringLiteral("+") + valueText(extent_, 2);
  const QString below_zero = valueText(-extent_, 2);
  const int number_width =
      std::max(fontMetrics().horizontalAdvance(above), fontMetrics().horizontalAdvance(below_zero)) + 2 * space::base;
  const QRectF area(number_width, line + space::base, width() - number_width - space::inGroup,
                    height() - 2 * (line + space::base));
  QPainter painter(this);
  painter.setPen(colors.muted);
  painter.drawText(QRectF(0, 0, width(), line), Qt::AlignLeft,
                   fontMetrics().elidedText(runs_, Qt::ElideMiddle, width()));
  painter.fillRect(area, colors.surface);
  const double scale = extent_ > 0.0 ? extent_ : 1.0;
  const double first = positions_.front(), span = std::max(positions_.back() - first, 1.0);
  const auto x = [&](double position) { return area.left() + area.width() * (position - first) / span; };
  const auto y = [&](double value) { return area.center().y() - 0.5 * area.height() * value / scale; };
  const auto number = [&](double value, const QString& text) {
    painter.drawText(QRectF(0, y(value) - line / 2.0, number_width - space::base, line),
                     Qt::AlignRight | Qt::AlignVCenter, text);
  };
  number(0.0, QStringLiteral("0"));
  if (extent_ > 0.0) {
    number(extent_, above);
    number(-extent_, below_zero);
  }
  const QRectF below(area.left(), area.bottom() + space::base, area.width(), line);
  painter.drawText(below, Qt::AlignLeft, groupedNumber(std::llround(first)));
  painter.drawText(below, Qt::AlignRight, groupedNumber(std::llround(positions_.back())));
  painter.setPen(colors.plotGrid);
  painter.drawLine(QPointF(area.left(), y(0.0)), QPointF(area.right(), y(0.0)));
  QPainterPath path;
  bool gap = true;
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    if (!std::isfinite(differences_[i])) {
      gap = true;
      continue;
    }
    const QPointF at(x(positions_[i]), y(differences_[i]));
    gap ? path.moveTo(at) : path.lineTo(at);
    gap = false;
  }
  painter.setPen(QPen(colors.accent, 1));
  painter.drawPath(path);
}

}  // namespace accrue::ui
