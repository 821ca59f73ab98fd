// SPDX-License-Identifier: GPL-3.0-or-later
#include "window_preview.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "models/run_text.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr int block_width = 14;
constexpr int block_gap = 2;
constexpr int window_gap = 10;
constexpr int strip_height = 20;

}  // namespace

WindowPreview::WindowPreview(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
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
  return {block_width * 16, strip_height + space::base};
}

QSize WindowPreview::minimumSizeHint() const {
  return {block_width * 6, strip_height + space::base};
}

void WindowPreview::resizeEvent(QResizeEvent*) {
  layOut();
}

void WindowPreview::layOut() {
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

void WindowPreview::paintEvent(QPaintEvent*) {
  const ThemeColors colors = themeColors(palette());
  QPainter painter(this);
  const int top = 0;
  for (const Block& block : blocks_) {
    const QRect box(block.x, top, block.width - 1, strip_height - 6);
    painter.setPen(block.plan.sync ? colors.collective : colors.backward);
    painter.setBrush(mixed(block.plan.sync ? colors.collective : colors.forward, palette().window().color(), 0.25));
    painter.drawRect(box);
    if (block.plan.update) {
      const QRect step(block.x + block.width + 1, top, 3, strip_height - 6);
      painter.fillRect(step, colors.optimizerStep);
    }
    if (block.plan.schedule_ticks > 0) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(colors.muted);
      painter.drawRect(QRect(block.x + block.width + 1, strip_height - 3, 3, 3));
    }
    if (block.plan.epoch_ends) {
      painter.setPen(colors.muted);
      painter.drawLine(block.x + block.width + 6, 0, block.x + block.width + 6, strip_height - 1);
    }
  }
  if (gap_x_ >= 0) {
    painter.setPen(colors.muted);
    painter.drawText(QRect(gap_x_ - window_gap / 2, top, 2 * window_gap, strip_height - 6), Qt::AlignCenter,
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
