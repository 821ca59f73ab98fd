// SPDX-License-Identifier: GPL-3.0-or-later
#include "gradient_pool.h"

#include <QCoreApplication>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "models/number_text.h"
#include "models/run_text.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

/// Tints of one hue that neighbours can be told apart by.
constexpr double tints[] = {1.0, 0.62, 0.82, 0.46};

QString tr(const char* text) {
  return QCoreApplication::translate("GradientPool", text);
}

QString ofFull(const WindowEnd& end) {
  return tr("%1 of %2").arg(groupedNumber(end.micro_steps), groupedNumber(end.planned));
}

}  // namespace

QString windowEndText(const WindowEnd& end) {
  const QString number = groupedNumber(end.update);
  QStringList parts;
  switch (end.outcome) {
    case StepOutcome::skipped_overflow:
      parts << tr("Update %1 skipped: overflow, its gradients were discarded").arg(number);
      break;
    case StepOutcome::skipped_empty:
      parts << tr("Update %1 skipped: its window held nothing").arg(number);
      break;
    case StepOutcome::accumulated:
      parts << tr("Step requested inside a window: nothing moved");
      break;
    case StepOutcome::updated:
      parts << tr("Update %1: weights moved by a gradient of norm %2").arg(number, valueText(end.grad_norm, 3));
      break;
  }
  const bool known = end.micro_steps > 0 && end.planned > 0;
  if (end.reason == "epoch_end" && known) parts << tr("flushed at epoch end: %1").arg(ofFull(end));
  if (end.reason == "run_end" && known) parts << tr("flushed at run end: %1").arg(ofFull(end));
  if (end.reason == "requested" && known) parts << tr("closed on request: %1").arg(ofFull(end));
  if (end.dropped_batches == 1) parts << tr("dropped 1 batch at the end of epoch %1").arg(groupedNumber(end.epoch + 1));
  if (end.dropped_batches > 1)
    parts << tr("dropped %1 batches at the end of epoch %2")
                 .arg(groupedNumber(end.dropped_batches), groupedNumber(end.epoch + 1));
  return parts.join(QStringLiteral("; "));
}

QString carriedText(const RankStatus& status) {
  if (status.carried <= 0) return {};
  return status.carried == 1 ? tr("carried: 1 micro-step from epoch %1").arg(groupedNumber(status.epoch))
                             : tr("carried: %1 micro-steps from epoch %2")
                                   .arg(groupedNumber(status.carried), groupedNumber(status.epoch));
}

GradientPool::GradientPool(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("gradientPool"));
  setFont(tabularFont(TextSize::small));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Gradients of each rank"));
}

void GradientPool::setView(const PoolView& view) {
  const bool other_count = view.ranks.size() != view_.ranks.size();
  view_ = view;
  if (other_count) updateGeometry();
  update();
}

QString GradientPool::text() const {
  QStringList rows;
  for (const auto& [rank, status] : view_.ranks) {
    QString row = tr("rank %1: %2 of %3").arg(rank).arg(status.filled).arg(status.window_size);
    if (status.lost)
      row = tr("%1, lost").arg(row);
    else if (view_.drained)
      row = tr("%1, drained").arg(row);
    else if (status.isReduced())
      row = tr("%1, reduced").arg(row);
    else if (status.window_tokens > 0)
      row = tr("%1, %2 items").arg(row, groupedNumber(status.window_tokens));
    rows.append(row);
  }
  return rows.join(QStringLiteral("; "));
}

int GradientPool::tankHeight() const {
  const auto ranks = view_.ranks.size();
  return ranks <= 2 ? 48 : ranks <= 4 ? 34 : ranks <= 8 ? 22 : 14;
}

int GradientPool::rowHeight() const {
  return std::max(fontMetrics().height(), tankHeight()) + space::inGroup;
}

QSize GradientPool::sizeHint() const {
  return {fontMetrics().averageCharWidth() * 28, static_cast<int>(view_.ranks.size()) * rowHeight()};
}

QSize GradientPool::minimumSizeHint() const {
  return {fontMetrics().averageCharWidth() * 18, static_cast<int>(view_.ranks.size()) * rowHeight()};
}

QString GradientPool::countText(const RankStatus& status) const {
  return status.lost ? tr("lost") : tr("%1/%2").arg(status.filled).arg(status.window_size);
}

double GradientPool::levelHeight(std::int64_t fullest) const {
  double sum = 0.0;
  std::size_t count = 0;
  for (const auto& [rank, status] : view_.ranks) {
    for (const PoolSlot& slot : status.slots) sum += static_cast<double>(slot.tokens);
    count += std::max<std::size_t>(status.slots.size(), 1);
  }
  return fullest > 0 && count > 0 ? sum / static_cast<double>(count) / static_cast<double>(fullest) : 0.0;
}

void GradientPool::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  std::int64_t fullest = 1;
  for (const auto& [rank, status] : view_.ranks)
    for (const PoolSlot& slot : status.slots) fullest = std::max(fullest, slot.tokens);
  const int name_width = fontMetrics().horizontalAdvance(tr("rank %1").arg(QStringLiteral("00"))) + space::inGroup;
  int count_width = fontMetrics().horizontalAdvance(tr("lost"));
  for (const auto& [rank, status] : view_.ranks)
    count_width =
        std::max(count_width, fontMetrics().horizontalAdvance(tr("%1/%1").arg(QString::number(status.window_size))));
  int y = 0;
  for (const auto& [rank, status] : view_.ranks) {
    const QRect row(0, y, width(), rowHeight() - space::inGroup);
    painter.setPen(colors.muted);
    painter.drawText(row, Qt::AlignVCenter | Qt::AlignLeft, tr("rank %1").arg(rank));
    painter.setPen(status.lost ? colors.failed : colors.text);
    painter.drawText(row, Qt::AlignVCenter | Qt::AlignRight, countText(status));
    const QRect tank = row.adjusted(name_width, 0, -count_width - space::inGroup, 0);
    if (status.window_size > 0 && tank.width() >= 8) paintTank(painter, tank, status, fullest);
    y += rowHeight();
  }
}

void GradientPool::paintTank(QPainter& painter, const QRect& tank, const RankStatus& status,
                             std::int64_t fullest) const {
  const ThemeColors colors = themeColors(palette());
  painter.fillRect(tank, colors.plotGrid);
  const QRect inside = tank.adjusted(1, 2, -1, -1);
  if (view_.drained) {
    // Empty: the gradients have been used. A skipped window is labelled as such.
    const bool skipped = view_.end && view_.end->outcome != StepOutcome::updated;
    painter.setPen(skipped ? colors.failed : colors.optimizerStep);
    const QString word = skipped ? tr("\u2715 skipped") : tr("\u2193 step");
    painter.drawText(inside, Qt::AlignCenter, word);
  } else if (status.isReduced()) {
    paintLevel(painter, inside, levelHeight(fullest));
  } else {
    paintSlots(painter, inside, status, fullest);
  }
  painter.setPen(colors.hairline);
  painter.setBrush(Qt::NoBrush);
  // Open at the top, as a tank is.
  painter.drawLine(tank.topLeft(), tank.bottomLeft());
  painter.drawLine(tank.bottomLeft(), tank.bottomRight());
  painter.drawLine(tank.topRight(), tank.bottomRight());
}

void GradientPool::paintSlots(QPainter& painter, const QRect& tank, const RankStatus& status,
                              std::int64_t fullest) const {
  const ThemeColors colors = themeColors(palette());
  const auto count = static_cast<int>(std::min(std::max<std::int64_t>(status.window_size, 1), RankTracker::most_slots));
  const int gap = tank.width() / count >= 6 ? 2 : 0;
  for (int slot = 0; slot < count; ++slot) {
    const int left = tank.left() + slot * tank.width() / count;
    const int right = tank.left() + (slot + 1) * tank.width() / count - gap;
    if (slot >= static_cast<int>(status.slots.size())) {
      painter.setPen(colors.hairline);
      painter.drawLine(left, tank.bottom(), right, tank.bottom());
      continue;
    }
    const PoolSlot& filled = status.slots[static_cast<std::size_t>(slot)];
    const double share = static_cast<double>(filled.tokens) / static_cast<double>(fullest);
    const int height = std::max(filled.micro_steps > 0 ? 2 : 0, static_cast<int>(std::lround(share * tank.height())));
    const bool carried = slot < status.carried;
    const QColor tint = mixed(colors.backward, palette().window().color(), tints[static_cast<std::size_t>(slot % 4)]);
    const QRect bar(left, tank.bottom() + 1 - height, right - left, height);
    painter.fillRect(bar, tint);
    if (carried) painter.fillRect(bar, QBrush(colors.surface, Qt::BDiagPattern));
  }
}

void GradientPool::paintLevel(QPainter& painter, const QRect& tank, double height) const {
  const ThemeColors colors = themeColors(palette());
  const int level = std::clamp(static_cast<int>(std::lround(height * tank.height())), 2, tank.height());
  const QRect fill(tank.left(), tank.bottom() + 1 - level, tank.width(), level);
  painter.fillRect(fill, colors.collective);
  const bool dark_text = contrastRatio(Qt::black, colors.collective) > contrastRatio(Qt::white, colors.collective);
  if (level < fontMetrics().height()) return;
  painter.setPen(dark_text ? Qt::black : Qt::white);
  painter.drawText(fill, Qt::AlignCenter, tr("\u21c4 reduced"));
}

}  // namespace accrue::ui
