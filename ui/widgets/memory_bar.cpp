// SPDX-License-Identifier: GPL-3.0-or-later
#include "memory_bar.h"

#include <QPainter>
#include <algorithm>

#include "models/run_text.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr int bar_height = 14;
constexpr int swatch = 9;

}  // namespace

const QList<MemoryKind>& memoryKinds() {
  static const QList<MemoryKind> kinds = {
      {MemoryBar::tr("Parameters"), &RankCost::parameters}, {MemoryBar::tr("Gradients"), &RankCost::gradients},
      {MemoryBar::tr("Optimizer"), &RankCost::optimizer},   {MemoryBar::tr("Activations"), &RankCost::activations},
      {MemoryBar::tr("Buffers"), &RankCost::buffers},       {MemoryBar::tr("Process"), &RankCost::process}};
  return kinds;
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

QString MemoryBar::text() const {
  QStringList parts;
  for (const MemoryKind& kind : memoryKinds())
    parts << QStringLiteral("%1 %2").arg(kind.name, bytesText(cost_.*kind.bytes));
  return parts.join(QStringLiteral("; "));
}

int MemoryBar::lineHeight() const {
  return fontMetrics().height() + 2;
}

QSize MemoryBar::minimumSizeHint() const {
  return {fontMetrics().averageCharWidth() * 12, sizeHint().height()};
}

QSize MemoryBar::sizeHint() const {
  return {fontMetrics().averageCharWidth() * 22,
          bar_height + space::base + static_cast<int>(memoryKinds().size()) * lineHeight()};
}

void MemoryBar::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  painter.fillRect(QRect(0, 0, width(), bar_height), colors.plotGrid);
  const double pixels = scale_ > 0 ? static_cast<double>(width()) / static_cast<double>(scale_) : 0.0;
  double sum = 0.0;
  int y = bar_height + space::base;
  int index = 0;
  for (const MemoryKind& kind : memoryKinds()) {
    // What a process costs before it holds anything is as large as a small model: it is said, not drawn.
    const bool drawn = kind.bytes != &RankCost::process;
    const QColor color = seriesColor(colors, index++);
    const int left = static_cast<int>(sum * pixels);
    if (drawn) sum += static_cast<double>(cost_.*kind.bytes);
    const int right = std::min(static_cast<int>(sum * pixels), width());
    painter.fillRect(QRect(left, 0, right - left, bar_height), color);
    const QRect line(0, y, width(), lineHeight());
    if (drawn) painter.fillRect(QRect(0, y + (lineHeight() - swatch) / 2, swatch, swatch), color);
    const QString size = bytesText(cost_.*kind.bytes);
    const int taken = fontMetrics().horizontalAdvance(size) + space::base;
    const QRect room = line.adjusted(swatch + space::base + 2, 0, -taken, 0);
    painter.setPen(colors.muted);
    painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(kind.name, Qt::ElideRight, room.width()));
    painter.setPen(colors.text);
    painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, size);
    y += lineHeight();
  }
}

}  // namespace accrue::ui
