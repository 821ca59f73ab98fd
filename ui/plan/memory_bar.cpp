// SPDX-License-Identifier: GPL-3.0-or-later
#include "memory_bar.h"

#include <QPainter>
#include <algorithm>

#include "kit/number_text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int bar_height = 14;
constexpr int measured_height = 8;
constexpr int swatch = 9;

/// The fixed cost of a process is as large as a small model: it is written, not drawn.
bool isDrawn(const MemoryKind& kind) {
  return kind.bytes != &RankCost::process;
}

}  // namespace

const QList<MemoryKind>& memoryKinds() {
  static const QList<MemoryKind> kinds = {
      {MemoryBar::tr("Parameters"), &RankCost::parameters}, {MemoryBar::tr("Gradients"), &RankCost::gradients},
      {MemoryBar::tr("Optimizer"), &RankCost::optimizer},   {MemoryBar::tr("Activations"), &RankCost::activations},
      {MemoryBar::tr("Buffers"), &RankCost::buffers},       {MemoryBar::tr("Process"), &RankCost::process}};
  return kinds;
}

void paintMemory(QPainter& painter, const QRect& bar, const RankCost& cost, std::int64_t scale,
                 const ThemeColors& colors) {
  painter.fillRect(bar, colors.plotGrid);
  const double pixels = scale > 0 ? static_cast<double>(bar.width()) / static_cast<double>(scale) : 0.0;
  double sum = 0.0;
  int index = 0;
  for (const MemoryKind& kind : memoryKinds()) {
    const QColor color = seriesColor(colors, index++);
    if (!isDrawn(kind)) continue;
    const int left = static_cast<int>(sum * pixels);
    sum += static_cast<double>(cost.*kind.bytes);
    const int right = std::min(static_cast<int>(sum * pixels), bar.width());
    painter.fillRect(QRect(bar.left() + left, bar.top(), right - left, bar.height()), color);
  }
}

MemoryBar::MemoryBar(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("memoryBar"));
  setFont(tabularFont(TextSize::small));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Memory of the rank by kind"));
}

void MemoryBar::setCost(const RankCost& cost, std::int64_t scale) {
  cost_ = cost;
  scale_ = scale;
  setAccessibleDescription(text());
  update();
}

void MemoryBar::setMeasured(const std::optional<RankCost>& measured) {
  if (measured == measured_) return;
  measured_ = measured;
  setAccessibleDescription(text());
  updateGeometry();
  update();
}

void MemoryBar::setLimit(std::int64_t bytes) {
  limit_ = bytes;
  update();
}

QString MemoryBar::text() const {
  QStringList parts;
  for (const MemoryKind& kind : memoryKinds()) {
    const std::int64_t measured = measured_ ? measured_.value().*kind.bytes : 0;
    const QString planned = QStringLiteral("%1 %2").arg(kind.name, bytesText(cost_.*kind.bytes));
    parts << (measured > 0 ? tr("%1, measured %2").arg(planned, bytesText(measured)) : planned);
  }
  return parts.join(QStringLiteral("; "));
}

int MemoryBar::lineHeight() const {
  return fontMetrics().height() + 2;
}

QSize MemoryBar::minimumSizeHint() const {
  return {fontMetrics().averageCharWidth() * 12, sizeHint().height()};
}

int MemoryBar::linesTop() const {
  return bar_height + space::base + (measured_ ? measured_height + 2 + lineHeight() : 0);
}

QSize MemoryBar::sizeHint() const {
  return {fontMetrics().averageCharWidth() * 22, linesTop() + static_cast<int>(memoryKinds().size()) * lineHeight()};
}

void MemoryBar::paintLine(QPainter& painter, const MemoryKind& kind, int index, int top) const {
  const ThemeColors colors = themeColors(palette());
  const QRect line(0, top, width(), lineHeight());
  if (isDrawn(kind))
    painter.fillRect(QRect(0, top + (lineHeight() - swatch) / 2, swatch, swatch), seriesColor(colors, index));
  const int column = fontMetrics().horizontalAdvance(QStringLiteral("0000.0 MiB")) + space::base;
  const QString size = bytesText(cost_.*kind.bytes);
  const int taken = measured_ ? 2 * column : fontMetrics().horizontalAdvance(size) + space::base;
  const QRect room = line.adjusted(swatch + space::base + 2, 0, -taken, 0);
  painter.setPen(colors.muted);
  painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                   fontMetrics().elidedText(kind.name, Qt::ElideRight, room.width()));
  painter.setPen(colors.text);
  painter.drawText(line.adjusted(0, 0, measured_ ? -column : 0, 0), Qt::AlignRight | Qt::AlignVCenter, size);
  const std::int64_t measured = measured_ ? measured_.value().*kind.bytes : 0;
  if (measured > 0) painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, bytesText(measured));
}

void MemoryBar::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  paintMemory(painter, QRect(0, 0, width(), bar_height), cost_, scale_, colors);
  int y = linesTop();
  if (measured_) {
    paintMemory(painter, QRect(0, bar_height + 2, width(), measured_height), *measured_, scale_, colors);
    const int column = fontMetrics().horizontalAdvance(QStringLiteral("0000.0 MiB")) + space::base;
    const QRect line(0, y - lineHeight(), width(), lineHeight());
    painter.setPen(colors.muted);
    painter.drawText(line.adjusted(0, 0, -column, 0), Qt::AlignRight | Qt::AlignVCenter, tr("planned"));
    painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, tr("measured"));
  }
  if (limit_ > 0 && scale_ > 0 && limit_ <= scale_) {
    const int x = static_cast<int>(static_cast<double>(limit_) / static_cast<double>(scale_) * (width() - 2));
    painter.fillRect(QRect(x, 0, 2, bar_height + (measured_ ? measured_height + 2 : 0)), colors.text);
  }
  int index = 0;
  for (const MemoryKind& kind : memoryKinds()) {
    paintLine(painter, kind, index++, y);
    y += lineHeight();
  }
}

}  // namespace accrue::ui
