// SPDX-License-Identifier: GPL-3.0-or-later
#include "rank_bars.h"

#include <QPainter>
#include <algorithm>

#include "models/run_text.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr std::int64_t most_cells = 64;
constexpr int bar_height = 12;

}  // namespace

RankBars::RankBars(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("rankBars"));
  setFont(tabularFont(TextSize::small));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Open window of each rank"));
}

void RankBars::setRanks(const std::map<std::int64_t, RankStatus>& ranks) {
  const bool other_count = ranks.size() != ranks_.size();
  ranks_ = ranks;
  if (other_count) updateGeometry();
  update();
}

QString RankBars::text() const {
  QStringList rows;
  for (const auto& [rank, status] : ranks_)
    rows.append(tr("rank %1: %2 of %3").arg(rank).arg(status.filled).arg(status.window_size));
  return rows.join(QStringLiteral(", "));
}

int RankBars::rowHeight() const {
  return std::max(fontMetrics().height(), bar_height) + space::base;
}

QSize RankBars::sizeHint() const {
  return {fontMetrics().averageCharWidth() * 28, static_cast<int>(ranks_.size()) * rowHeight()};
}

QSize RankBars::minimumSizeHint() const {
  return {fontMetrics().averageCharWidth() * 18, static_cast<int>(ranks_.size()) * rowHeight()};
}

void RankBars::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  int y = 0;
  for (const auto& [rank, status] : ranks_) {
    paintRow(painter, y, rank, status);
    y += rowHeight();
  }
}

void RankBars::paintRow(QPainter& painter, int y, std::int64_t rank, const RankStatus& status) const {
  const ThemeColors colors = themeColors(palette());
  const int height = rowHeight() - space::base;
  const int name_width = fontMetrics().horizontalAdvance(tr("rank %1").arg(QStringLiteral("00"))) + space::inGroup;
  const QString count = status.lost ? tr("lost") : tr("%1/%2").arg(status.filled).arg(status.window_size);
  const int count_width = fontMetrics().horizontalAdvance(tr("%1/%1").arg(QString::number(status.window_size)));
  painter.setPen(colors.muted);
  painter.drawText(QRect(0, y, name_width, height), Qt::AlignVCenter | Qt::AlignLeft, tr("rank %1").arg(rank));
  painter.setPen(status.lost ? colors.failed : colors.text);
  painter.drawText(QRect(width() - count_width, y, count_width, height), Qt::AlignVCenter | Qt::AlignRight, count);
  const QRect bar(name_width, y + (height - bar_height) / 2, width() - name_width - count_width - space::inGroup,
                  bar_height);
  if (status.window_size <= 0 || bar.width() < 8) return;
  const std::int64_t cells = std::min(status.window_size, most_cells);
  const std::int64_t filled = status.filled * cells / status.window_size;
  const int gap = bar.width() / cells >= 6 ? 2 : 0;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const int left = bar.left() + static_cast<int>(cell * bar.width() / cells);
    const int right = bar.left() + static_cast<int>((cell + 1) * bar.width() / cells) - gap;
    const QRect box(left, bar.top(), right - left, bar.height());
    const bool boundary = cell + 1 == cells;
    painter.fillRect(box, cell < filled ? (boundary ? colors.collective : colors.backward) : colors.plotGrid);
  }
}

}  // namespace accrue::ui
