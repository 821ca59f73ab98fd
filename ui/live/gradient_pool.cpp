// SPDX-License-Identifier: GPL-3.0-or-later
#include "gradient_pool.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/text_scale.h"
#include "kit/theme.h"
#include "widgets/tip_text.h"

namespace accrue::ui {

namespace {

/// Tints of one hue that distinguish neighbours.
constexpr double tints[] = {1.0, 0.62, 0.82, 0.46};

QFont countFont() {
  QFont font = tabularFont(TextSize::body);
  font.setWeight(QFont::DemiBold);
  return font;
}

/// Words in a tank, upright or turned by a quarter.
struct Words {
  QString text;
  bool turned = false;
};

/// Whether all its micro-steps are done, so that each one's share is known.
bool isWhole(const RankStatus& status) {
  return status.window_size > 0 && status.filled >= status.window_size;
}

qint64 percentOf(const PoolSlot& slot, const RankStatus& status) {
  return std::llround(100.0 * static_cast<double>(slot.tokens) / static_cast<double>(status.window_tokens));
}

/// Returns "8 items", or "25 %" once the window is whole, with the norm of the sum so far below it, if known. The first
/// that fits is painted.
std::vector<Words> slotWords(const PoolSlot& slot, const RankStatus& status) {
  if (status.window_tokens <= 0 || slot.micro_steps <= 0) return {};
  const QString share = isWhole(status)    ? tr("%1 %").arg(percentOf(slot, status))
                        : slot.tokens == 1 ? tr("1 item")
                                           : tr("%1 items").arg(groupedNumber(slot.tokens));
  std::vector<Words> words{{share}};
  if (!(slot.norm > 0.0)) return words;
  const QString norm = tr("\u03a3\u2016%1\u2016").arg(valueText(slot.norm, 2));
  const QString both = share + QLatin1Char('\n') + norm;
  words.insert(words.begin(), {{both}, {both, true}, {norm, true}});
  return words;
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
      parts << (end.grad_norm
                    ? tr("Update %1 is done: its gradient had norm %2").arg(number, valueText(*end.grad_norm, 3))
                    : tr("Update %1 is done").arg(number));
      break;
  }
  const bool known = end.micro_steps > 0 && end.planned > 0;
  if (end.reason == "epoch_end" && known) parts << tr("flushed at epoch end: %1").arg(ofFull(end));
  if (end.reason == "run_end" && known) parts << tr("flushed at run end: %1").arg(ofFull(end));
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

double usedNorm(const RankStatus& status) {
  const double divided = status.factor > 0.0 ? status.sum_norm * status.factor : status.sum_norm;
  return status.clip > 0.0 ? divided * status.clip : divided;
}

QString boundaryText(const RankStatus& status) {
  if (!(status.factor > 0.0) || !(status.sum_norm > 0.0)) return {};
  const double divided = status.sum_norm * status.factor;
  QString text = status.factor == 1.0
                     ? tr("Unscale: nothing is left to divide, the norm stays %1").arg(valueText(divided, 3))
                     : tr("Unscale: norm of the sum %1 \u00d7 %2 = %3")
                           .arg(valueText(status.sum_norm, 3), valueText(status.factor, 3), valueText(divided, 3));
  if (status.clip > 0.0 && status.clip < 1.0)
    text += tr("; clip: %1 \u00d7 %2 = %3")
                .arg(valueText(divided, 3), valueText(status.clip, 3), valueText(divided * status.clip, 3));
  else if (status.clip > 0.0)
    text += tr("; clip: short enough, it stays");
  return text;
}

GradientPool::GradientPool(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("gradientPool"));
  setFont(tabularFont(TextSize::small));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setAccessibleName(tr("Gradients of each rank"));
  setToolTip(tipText(
      tr("A slot for each micro-step of the window, as high as its share of the items. \u03a3\u2016\u2026\u2016 is the "
         "norm of the sum so far: of this slot and those before it, before the sum is divided.")));
}

void GradientPool::setView(const PoolView& view) {
  const bool other_count = view.ranks.size() != view_.ranks.size();
  view_ = view;
  if (other_count) updateGeometry();
  update();
  if (QToolTip::isVisible() && QToolTip::text() == tip_) showTip(tip_at_);
}

QString GradientPool::text() const {
  QStringList rows;
  for (const auto& [rank, status] : view_.ranks) {
    QString row = tr("rank %1: %2 of %3").arg(rank).arg(status.filled).arg(status.window_size);
    if (status.sum_norm > 0.0 && !view_.drained) row = tr("%1, norm %2").arg(row, valueText(status.sum_norm, 3));
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

int GradientPool::columns() const {
  const auto ranks = view_.ranks.size();
  return ranks <= 2 ? 1 : ranks <= 8 ? 2 : 4;
}

int GradientPool::rows() const {
  return (static_cast<int>(view_.ranks.size()) + columns() - 1) / columns();
}

int GradientPool::headerHeight() const {
  return QFontMetrics(countFont()).height() + 2;
}

int GradientPool::leastTankHeight() const {
  const auto ranks = view_.ranks.size();
  const int least = ranks <= 8 ? 72 : ranks <= 16 ? 48 : 24;
  return static_cast<int>(std::lround(least * std::max(textScale(), 1.0)));
}

QRect GradientPool::tankRect(std::size_t place) const {
  const int most = std::max(168, leastTankHeight());  ///< greater heights show no more
  const int column = static_cast<int>(place) % columns();
  const int row = static_cast<int>(place) / columns();
  const int room = rows() > 0 ? (height() + space::inGroup) / rows() : height();
  const int tank = std::clamp(room - headerHeight() - space::inGroup, leastTankHeight(), most);
  const int left = column * (width() + space::inGroup) / columns();
  const int right = (column + 1) * (width() + space::inGroup) / columns() - space::inGroup;
  return {left, row * (headerHeight() + tank + space::inGroup) + headerHeight(), right - left, tank};
}

QSize GradientPool::sizeHint() const {
  const QSize least = minimumSizeHint();
  return {fontMetrics().averageCharWidth() * 28, least.height()};
}

QSize GradientPool::minimumSizeHint() const {
  const int row = headerHeight() + leastTankHeight() + space::inGroup;
  return {fontMetrics().averageCharWidth() * 18, std::max(rows() * row - space::inGroup, 0)};
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
  QPainter painter(this);
  std::int64_t fullest = 1;
  for (const auto& [rank, status] : view_.ranks)
    for (const PoolSlot& slot : status.slots) fullest = std::max(fullest, slot.tokens);
  std::size_t place = 0;
  for (const auto& [rank, status] : view_.ranks) {
    const QRect tank = tankRect(place++);
    paintHeader(painter, tank, rank, status);
    if (status.window_size > 0 && tank.width() >= 8) paintTank(painter, tank, status, fullest);
  }
}

void GradientPool::paintHeader(QPainter& painter, const QRect& tank, std::int64_t rank,
                               const RankStatus& status) const {
  const ThemeColors colors = themeColors(palette());
  const QRect header(tank.left(), tank.top() - headerHeight(), tank.width(), headerHeight());
  painter.setFont(font());
  painter.setPen(colors.muted);
  painter.drawText(header, Qt::AlignVCenter | Qt::AlignLeft, tr("rank %1").arg(rank));
  painter.setFont(countFont());
  painter.setPen(status.lost ? colors.failed : colors.text);
  painter.drawText(header, Qt::AlignVCenter | Qt::AlignRight, countText(status));
  painter.setFont(font());
}

void GradientPool::paintTank(QPainter& painter, const QRect& tank, const RankStatus& status,
                             std::int64_t fullest) const {
  const ThemeColors colors = themeColors(palette());
  painter.fillRect(tank, mixed(colors.text, colors.surface, 0.1));
  const QRect inside = tank.adjusted(1, 2, -1, -1);
  if (view_.drained) {
    // Empty: the gradients have been used. A skipped window is labelled as such.
    const bool skipped = view_.end && view_.end->outcome != StepOutcome::updated;
    painter.setPen(skipped ? colors.failed : colors.optimizerStep);
    const QString word = skipped ? tr("\u2715 skipped") : tr("\u2193 step");
    painter.drawText(inside, Qt::AlignCenter, word);
  } else if (status.isReduced()) {
    paintLevel(painter, inside, levelHeight(fullest), status);
  } else {
    paintSlots(painter, inside, status, fullest);
  }
  painter.setPen(colors.hairline);
  painter.setBrush(Qt::NoBrush);
  // Open at the top, like a tank.
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
    // Equally wide despite rounding, so that the words fit in all slots or in none.
    const QRect slot_rect(left, tank.top(), tank.width() / count - gap, tank.height());
    if (carried) continue;
    for (const Words& words : slotWords(filled, status))
      if (paintWords(painter, slot_rect, bar, tint, words.text, words.turned)) break;
  }
}

/// Paints in the bar if it is high enough, else over it; false if the words fit in neither.
bool GradientPool::paintWords(QPainter& painter, const QRect& slot, const QRect& bar, const QColor& tint,
                              const QString& text, bool turned) const {
  QSize size = fontMetrics().size(0, text);
  if (turned) size.transpose();
  const bool inside = bar.height() >= size.height() + space::base;
  const bool over = bar.top() - slot.top() >= size.height();
  if (size.width() > slot.width() || (!inside && !over)) return false;
  const bool dark = contrastRatio(Qt::black, tint) > contrastRatio(Qt::white, tint);
  painter.setPen(!inside ? palette().windowText().color() : dark ? QColor(Qt::black) : QColor(Qt::white));
  const int top = inside ? bar.top() + 2 : bar.top() - size.height();
  const QRect where(slot.center().x() - size.width() / 2, top, size.width(), size.height());
  if (!turned) {
    painter.drawText(where, Qt::AlignHCenter | Qt::AlignTop, text);
    return true;
  }
  painter.save();
  painter.translate(where.left(), where.top() + where.height());
  painter.rotate(-90.0);
  painter.drawText(QRect(QPoint(), size.transposed()), Qt::AlignHCenter | Qt::AlignTop, text);
  painter.restore();
  return true;
}

void GradientPool::paintLevel(QPainter& painter, const QRect& tank, double height, const RankStatus& status) const {
  const ThemeColors colors = themeColors(palette());
  const int level = std::clamp(static_cast<int>(std::lround(height * tank.height())), 2, tank.height());
  const QRect fill(tank.left(), tank.bottom() + 1 - level, tank.width(), level);
  painter.fillRect(fill, colors.collective);
  const bool clipped = status.factor > 0.0 && status.clip > 0.0 && status.clip < 1.0;
  const QString word = clipped ? tr("clipped") : status.factor > 0.0 ? tr("divided") : tr("\u21c4 reduced");
  const double used = usedNorm(status);
  const QString norm = used > 0.0 ? tr("\u2016%1\u2016").arg(valueText(used, 3)) : QString();
  for (const QString& words : {word + QLatin1Char('\n') + norm, norm, word})
    if (!words.trimmed().isEmpty() && paintWords(painter, tank, fill, colors.collective, words.trimmed(), false)) break;
}

QString GradientPool::tipAt(const QPoint& at) const {
  std::size_t place = 0;
  for (const auto& [rank, status] : view_.ranks) {
    const QRect tank = tankRect(place++);
    if (!tank.contains(at) || view_.drained) continue;
    if (status.isReduced()) {
      const double used = usedNorm(status);
      return used > 0.0 ? tr("rank %1: norm %2").arg(rank).arg(valueText(used, 3)) : QString();
    }
    const auto count = std::clamp<std::int64_t>(status.window_size, 1, RankTracker::most_slots);
    const auto slot = static_cast<std::size_t>((at.x() - tank.left()) * count / std::max(tank.width(), 1));
    if (slot >= status.slots.size() || status.window_tokens <= 0) return {};
    const PoolSlot& filled = status.slots[slot];
    const QString place_text = tr("rank %1, slot %2").arg(rank).arg(slot + 1);
    const QString text = isWhole(status)
                             ? tr("%1: %2 % of the items").arg(place_text).arg(percentOf(filled, status))
                             : tr("%1: %2 of %3 items so far")
                                   .arg(place_text, groupedNumber(filled.tokens), groupedNumber(status.window_tokens));
    return filled.norm > 0.0 ? tr("%1; norm of the sum so far %2").arg(text, valueText(filled.norm, 3)) : text;
  }
  return {};
}

bool GradientPool::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  showTip(static_cast<QHelpEvent*>(event)->pos());
  return true;
}

void GradientPool::showTip(const QPoint& at) {
  const QString about = tipAt(at);
  tip_ = about.isEmpty() ? toolTip() : about + QLatin1Char('\n') + toolTip();
  tip_at_ = at;
  QToolTip::showText(mapToGlobal(at), tip_, this);
}

}  // namespace accrue::ui
