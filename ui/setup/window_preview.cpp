// SPDX-License-Identifier: GPL-3.0-or-later
#include "window_preview.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "kit/number_text.h"
#include "kit/text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr int block_width = 14;
constexpr int block_gap = 2;
constexpr int window_gap = 10;
constexpr int strip_height = 20;
constexpr int block_height = strip_height - 6;
constexpr int slim_mark = 5;  ///< of a bar, a tick and a hairline in the legend

}  // namespace

WindowPreview::WindowPreview(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setFont(textFont(TextSize::small));
  layOutLegend();
}

void WindowPreview::setSketch(const PlanSketch& sketch) {
  if (sketch.first == plans_ && sketch.epochTail == tail_ && sketch.steps == steps_) return;
  steps_ = sketch.steps;
  plans_ = sketch.first;
  tail_ = sketch.epochTail;
  layOut();
  describe();
  update();
}

QSize WindowPreview::sizeHint() const {
  return {block_width * 16, height()};
}

QSize WindowPreview::minimumSizeHint() const {
  int widest = 0;
  for (const LegendEntry& entry : legend_) widest = std::max(widest, entryWidth(entry.mark, entry.text));
  return {std::max(block_width * 6, widest), height()};
}

void WindowPreview::resizeEvent(QResizeEvent*) {
  layOut();
}

void WindowPreview::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) layOutLegend();
}

int WindowPreview::markWidth(Mark mark) {
  return mark == Mark::microStep || mark == Mark::reduction ? block_width : slim_mark;
}

int WindowPreview::entryWidth(Mark mark, const QString& text) const {
  return markWidth(mark) + space::base + fontMetrics().horizontalAdvance(text);
}

int WindowPreview::legendLine() const {
  return std::max(fontMetrics().height(), block_height + 2);
}

void WindowPreview::layOutLegend() {
  legend_.clear();
  const auto occurs = [this](auto has) { return std::ranges::any_of(plans_, has) || std::ranges::any_of(tail_, has); };
  const int line = legendLine();
  QPoint place(0, strip_height + space::base);
  const auto add = [&](Mark mark, const QString& text) {
    const int wide = entryWidth(mark, text);
    if (place.x() > 0 && place.x() + wide > width()) place = {0, place.y() + line};
    legend_.push_back({mark, text, place});
    place.rx() += wide + space::inGroup;
  };
  add(Mark::microStep, tr("micro-step"));
  if (occurs([](const MicroPlan& plan) { return plan.sync; })) add(Mark::reduction, tr("reduces"));
  if (occurs([](const MicroPlan& plan) { return plan.update; })) add(Mark::update, tr("update"));
  if (occurs([](const MicroPlan& plan) { return plan.schedule_ticks > 0; })) add(Mark::schedule, tr("schedule"));
  if (occurs([](const MicroPlan& plan) { return plan.epoch_ends; })) add(Mark::epoch, tr("epoch"));
  setFixedHeight(place.y() + line);
  updateGeometry();  // its entries may need more width
}

void WindowPreview::layOut() {
  layOutLegend();
  blocks_.clear();
  gap_x_ = -1;
  const auto advance = [](const MicroPlan& plan) {
    return block_width + (plan.update ? window_gap : block_gap) + (plan.epoch_ends && !plan.update ? window_gap : 0);
  };
  int total = 0;
  for (const MicroPlan& plan : plans_) total += advance(plan);
  const bool all_fit = total <= width() || tail_.empty();
  int tail_width = 0;
  if (!all_fit)
    for (const MicroPlan& plan : tail_) tail_width += advance(plan);
  const bool show_tail = !all_fit && tail_width + 2 * window_gap < width() / 2 &&
                         tail_.front().micro_step > 1 + width() / (block_width + window_gap);
  const int room = show_tail ? width() - tail_width - 2 * window_gap : width();
  int x = 0;
  for (const MicroPlan& plan : plans_) {
    if (x + block_width > room) break;
    blocks_.push_back({plan, x, block_width});
    x += advance(plan);
  }
  if (!show_tail) return;
  gap_x_ = x;
  x += window_gap;
  for (const MicroPlan& plan : tail_) {
    blocks_.push_back({plan, x, block_width});
    x += advance(plan);
  }
}

void WindowPreview::drawMark(QPainter& painter, Mark mark, int x, int top, const ThemeColors& colors) const {
  const int after = x + block_width + 1;
  switch (mark) {
    case Mark::microStep:
    case Mark::reduction: {
      const bool reduces = mark == Mark::reduction;
      painter.setPen(reduces ? colors.collective : colors.backward);
      painter.setBrush(mixed(reduces ? colors.collective : colors.forward, palette().window().color(), 0.25));
      painter.drawRect(QRect(x, top, block_width - 1, block_height));
      break;
    }
    case Mark::update:
      painter.fillRect(QRect(after, top, 3, block_height), colors.optimizerStep);
      break;
    case Mark::schedule:
      painter.fillRect(QRect(after, top + block_height + 3, 3, 3), colors.muted);
      break;
    case Mark::epoch:
      painter.setPen(colors.muted);
      painter.drawLine(after + 5, top, after + 5, top + strip_height - 1);
      break;
  }
}

void WindowPreview::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  const int top = 0;
  for (const Block& block : blocks_) {
    drawMark(painter, block.plan.sync ? Mark::reduction : Mark::microStep, block.x, top, colors);
    if (block.plan.update) drawMark(painter, Mark::update, block.x, top, colors);
    if (block.plan.schedule_ticks > 0) drawMark(painter, Mark::schedule, block.x, top, colors);
    if (block.plan.epoch_ends) drawMark(painter, Mark::epoch, block.x, top, colors);
  }
  // Centres text and mark in their line, whichever is higher.
  const int baseline = fontMetrics().ascent() + (legendLine() - fontMetrics().height()) / 2;
  const int mark_top = (legendLine() - block_height) / 2;
  for (const LegendEntry& entry : legend_) {
    // Marks that follow a block are drawn without one, and a tick in the middle of its line.
    const bool slim = markWidth(entry.mark) == slim_mark;
    const int after_block = entry.mark == Mark::epoch ? block_width + 4 : block_width;
    const int up = entry.mark == Mark::schedule ? block_height / 2 + 3 : 0;
    drawMark(painter, entry.mark, entry.place.x() - (slim ? after_block : 0), entry.place.y() + mark_top - up, colors);
    painter.setPen(colors.muted);
    painter.drawText(entry.place + QPoint(markWidth(entry.mark) + space::base, baseline), entry.text);
  }
  if (gap_x_ >= 0) {
    painter.setPen(colors.muted);
    painter.drawText(QRect(gap_x_ - window_gap / 2, top, 2 * window_gap, block_height), Qt::AlignCenter,
                     QStringLiteral("\u2026"));
  }
}

void WindowPreview::describe() {
  QStringList windows;
  std::int64_t first = 1;
  for (const MicroPlan& plan : plans_) {
    if (!plan.update) continue;
    if (windows.size() == 3) break;
    windows.append(tr("micro-steps %1 to %2 make update %3").arg(first).arg(plan.micro_step).arg(plan.window + 1));
    first = plan.micro_step + 1;
  }
  if (!tail_.empty()) windows.append(tr("the epoch ends with a window of %1 of %2").arg(tail_.size()).arg(steps_));
  text_ = windows.join(QStringLiteral("; "));
  setAccessibleName(tr("First windows of the plan"));
  setAccessibleDescription(text_);
}

QString WindowPreview::tipAt(int x) const {
  for (const Block& block : blocks_) {
    if (x < block.x || x >= block.x + block.width + block_gap) continue;
    const MicroPlan& plan = block.plan;
    QString tip = tr("Micro-step %1: %2 of %3 in its window, epoch %4")
                      .arg(groupedNumber(plan.micro_step))
                      .arg(plan.position + 1)
                      .arg(plan.window_size)
                      .arg(plan.epoch + 1);
    if (plan.sync) tip = tr("%1\nGradients are reduced in this backward").arg(tip);
    if (plan.update) tip = tr("%1\nThe optimizer steps after it (%2)").arg(tip, fromView(to_string(plan.reason)));
    return tip;
  }
  return text_;
}

bool WindowPreview::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), tipAt(help->pos().x()), this);
  return true;
}

}  // namespace accrue::ui
