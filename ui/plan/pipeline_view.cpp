// SPDX-License-Identifier: GPL-3.0-or-later
#include "pipeline_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>

#include "kit/number_text.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr double leastLane = 14.0;
constexpr double mostLane = 30.0;
constexpr int laneSpacing = 2;
/// Average block width below which a lane shows shares of each pixel column's time.
constexpr double leastBlock = 3.0;

/// 1, 2 or 5 times a power of ten, for about `ticks` ticks.
double tickStep(double length, double ticks) {
  const double rough = length / std::max(ticks, 1.0);
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * decade >= rough) return factor * decade;
  return 10.0 * decade;
}

bool endsBefore(const PipelineBlock& block, double time) {
  return block.end < time;
}

QColor readableOn(const QColor& ground, const ThemeColors& colors) {
  return contrastRatio(colors.text, ground) >= contrastRatio(colors.surface, ground) ? colors.text : colors.surface;
}

}  // namespace

PipelineView::PipelineView(Kind kind, QWidget* parent) : QWidget(parent), kind_(kind) {
  setFont(tabularFont(TextSize::small));
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
}

void PipelineView::setTimeline(const PipelineTimeline& timeline, bool timed,
                               const std::vector<std::vector<std::pair<double, double>>>& steps) {
  const bool other_height = timeline.lanes.size() != timeline_.lanes.size();
  timeline_ = timeline;
  steps_ = steps;
  timed_ = timed;
  stash_.clear();
  chunks_ = 1;
  for (std::size_t stage = 0; stage < timeline_.lanes.size(); ++stage) {
    stash_.push_back(timeline_.stash(stage));
    for (const PipelineBlock& block : timeline_.lanes[stage]) chunks_ = std::max(chunks_, block.chunk + 1);
  }
  if (other_height) updateGeometry();
  redraw();
}

void PipelineView::setRange(double from, double to) {
  if (from == from_ && to == to_) return;
  from_ = from;
  to_ = to;
  redraw();
}

void PipelineView::setLit(const std::optional<PipelineSpot>& spot) {
  if (spot == lit_) return;
  lit_ = spot;
  update();
}

void PipelineView::redraw() {
  picture_ = {};
  update();
}

const PipelineBlock* PipelineView::find(const PipelineSpot& spot) const {
  if (spot.stage >= timeline_.lanes.size()) return nullptr;
  const auto& lane = timeline_.lanes[spot.stage];
  const auto at = std::ranges::find_if(lane, [&](const PipelineBlock& block) {
    return block.action == spot.action && block.micro_step == spot.micro_step && block.chunk == spot.chunk;
  });
  return at == lane.end() ? nullptr : &*at;
}

QSize PipelineView::sizeHint() const {
  const auto lanes = static_cast<int>(std::max<std::size_t>(timeline_.lanes.size(), 1));
  return {480, lanes * (24 + laneSpacing) + axisHeight()};
}

QSize PipelineView::minimumSizeHint() const {
  const auto lanes = static_cast<int>(std::max<std::size_t>(timeline_.lanes.size(), 1));
  return {240, lanes * (static_cast<int>(leastLane) + laneSpacing) + axisHeight()};
}

QRectF PipelineView::area() const {
  const int left = fontMetrics().horizontalAdvance(tr("stage %1").arg(QStringLiteral("00"))) + 3 * space::inGroup;
  const int right = fontMetrics().horizontalAdvance(keepsText(888)) + 2 * space::inGroup;
  return QRectF(rect()).adjusted(left, 0, -right, -axisHeight());
}

int PipelineView::axisHeight() const {
  return shows_axis_ ? fontMetrics().height() + space::base : 0;
}

void PipelineView::setShowsAxis(bool on) {
  if (on == shows_axis_) return;
  shows_axis_ = on;
  updateGeometry();
  redraw();
}

QRectF PipelineView::laneRect(std::size_t stage) const {
  const QRectF all = area();
  const double place = std::min(all.height() / static_cast<double>(std::max<std::size_t>(timeline_.lanes.size(), 1)),
                                mostLane + laneSpacing);
  return {all.left(), std::round(all.top() + place * static_cast<double>(stage)), all.width(),
          std::max(std::floor(place) - laneSpacing, 2.0)};
}

double PipelineView::xOf(double time) const {
  const QRectF all = area();
  return all.left() + (time - from_) / (to_ - from_) * all.width();
}

double PipelineView::timeAt(double x) const {
  const QRectF all = area();
  return from_ + (x - all.left()) / std::max(all.width(), 1.0) * (to_ - from_);
}

QRectF PipelineView::blockRect(std::size_t stage, const PipelineBlock& block) const {
  const QRectF lane = laneRect(stage);
  const double left = std::round(std::max(xOf(block.begin), lane.left()));
  const double right = std::round(std::min(xOf(block.end), lane.right()));
  return {left, lane.top(), std::max(right - left, 0.0), lane.height()};
}

QColor PipelineView::fill(PipelineAction action, const ThemeColors& colors) const {
  const bool forward = action == PipelineAction::forward;
  const QColor tint = forward ? colors.forward : colors.backward;
  return kind_ == Kind::measured ? tint : mixed(tint, colors.surface, forward ? 0.3 : 0.5);
}

QColor PipelineView::outline(PipelineAction action, const ThemeColors& colors) const {
  if (kind_ == Kind::measured) return {};
  return action == PipelineAction::forward ? colors.backward : colors.optimizerStep;
}

/// A stage of several chunks counts its stash in chunks.
QString PipelineView::keepsText(std::int64_t count) const {
  if (chunks_ > 1) return count == 1 ? tr("keeps 1 chunk") : tr("keeps %1 chunks").arg(count);
  return count == 1 ? tr("keeps 1 micro-step") : tr("keeps %1 micro-steps").arg(count);
}

void PipelineView::drawBlock(QPainter& painter, const PipelineBlock& block, const QRectF& rect,
                             const ThemeColors& colors) const {
  const QColor ground = fill(block.action, colors);
  const double mark = rect.height() < 20.0 ? 2.0 : 3.0;
  const QRectF box = rect.width() >= 4.0 ? rect.adjusted(0, 0, -1, 0) : rect;  // neighbours stay apart
  painter.fillRect(box, ground);
  if (kind_ == Kind::planned && box.width() >= 4.0) {
    painter.setPen(outline(block.action, colors));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0, 0, -1, -1));
  }
  if (chunks_ > 1 && box.width() >= 2.0 * static_cast<double>(chunks_)) {
    const double part = (box.width() - 2.0) / static_cast<double>(chunks_);
    painter.fillRect(
        QRectF(box.left() + 1.0 + part * static_cast<double>(block.chunk), box.bottom() - mark - 1.0, part, mark),
        colors.optimizerStep);
  }
  const QString number = QString::number(block.micro_step + 1);
  if (fontMetrics().horizontalAdvance(number) + 2 > box.width() || box.height() < leastLane - 1.0) return;
  painter.setPen(readableOn(ground, colors));
  painter.drawText(box.adjusted(0, 0, 0, chunks_ > 1 ? -mark : 0.0), Qt::AlignCenter, number);
}

void PipelineView::drawShares(QPainter& painter, std::size_t stage, const QRectF& lane,
                              const ThemeColors& colors) const {
  const auto columns = static_cast<std::size_t>(std::max(std::floor(lane.width()), 1.0));
  const double column = (to_ - from_) / lane.width();
  std::vector<std::array<double, 2>> spent(columns, {0.0, 0.0});  // forward, backward
  const auto& blocks = timeline_.lanes[stage];
  for (auto block = std::lower_bound(blocks.begin(), blocks.end(), from_, endsBefore);
       block != blocks.end() && block->begin < to_; ++block) {
    const double end = std::min(block->end, to_);
    for (double time = std::max(block->begin, from_); time < end;) {
      const auto at = std::min(static_cast<std::size_t>((time - from_) / column), columns - 1);
      const double until = std::max(std::min(from_ + static_cast<double>(at + 1) * column, end), time + column * 1e-6);
      spent[at][block->action == PipelineAction::forward ? 0 : 1] += until - time;
      time = until;
    }
  }
  for (std::size_t at = 0; at < columns; ++at) {
    double bottom = lane.bottom();
    for (const PipelineAction action : {PipelineAction::forward, PipelineAction::backward}) {
      const double share = spent[at][action == PipelineAction::forward ? 0 : 1] / column;
      const double height = lane.height() * std::clamp(share, 0.0, 1.0);
      painter.fillRect(QRectF(lane.left() + static_cast<double>(at), bottom - height, 1.0, height),
                       fill(action, colors));
      bottom -= height;
    }
  }
}

void PipelineView::drawLane(QPainter& painter, std::size_t stage, const ThemeColors& colors) const {
  const QRectF lane = laneRect(stage);
  const double begin = std::max(xOf(timeline_.begin()), lane.left());
  const double end = std::min(xOf(timeline_.end()), lane.right());
  // The remaining hatching is idle time.
  if (end > begin)
    painter.fillRect(QRectF(begin, lane.top(), end - begin, lane.height()), QBrush(colors.waiting, Qt::BDiagPattern));
  const auto& blocks = timeline_.lanes[stage];
  const auto first = std::lower_bound(blocks.begin(), blocks.end(), from_, endsBefore);
  const auto last = std::lower_bound(first, blocks.end(), to_,
                                     [](const PipelineBlock& block, double time) { return block.begin < time; });
  if (static_cast<double>(last - first) * leastBlock > lane.width()) {
    drawShares(painter, stage, lane, colors);
  } else {
    for (auto block = first; block != last; ++block) {
      const QRectF rect = blockRect(stage, *block);
      drawBlock(painter, *block, {rect.left(), rect.top(), std::max(rect.width(), 1.0), rect.height()}, colors);
    }
  }
  if (stage >= steps_.size()) return;
  for (const auto& [from, to] : steps_[stage]) {
    const double left = std::round(std::max(xOf(from), lane.left()));
    const double right = std::round(std::min(xOf(to), lane.right()));
    if (right >= left)
      painter.fillRect(QRectF(left, lane.top(), std::max(right - left, 1.0), lane.height()), colors.optimizerStep);
  }
}

void PipelineView::drawAxis(QPainter& painter, const ThemeColors& colors) const {
  const QRectF all = area();
  const double top = laneRect(timeline_.lanes.size() - 1).bottom() + space::base;
  const double step = tickStep(to_ - from_, all.width() / 90.0);
  painter.setPen(colors.hairline);
  painter.drawLine(QPointF(all.left(), top - 2.0), QPointF(all.right(), top - 2.0));
  painter.setPen(colors.muted);
  for (double time = std::ceil(from_ / step) * step; time <= to_ + step * 1e-6; time += step) {
    const double x = xOf(time);
    painter.drawLine(QPointF(x, top - 2.0), QPointF(x, top + 1.0));
    const double shown = std::abs(time) < step * 1e-6 ? 0.0 : time;
    const QString label = timed_ ? tickText(shown * 1e3, step * 1e3) + thinSpace + tr("ms") : tickText(shown, step);
    painter.drawText(QRectF(x - 45.0, top, 90.0, fontMetrics().height()), Qt::AlignHCenter | Qt::AlignTop, label);
  }
}

QPixmap PipelineView::draw() const {
  QPixmap picture(size() * devicePixelRatioF());
  picture.setDevicePixelRatio(devicePixelRatioF());
  const ThemeColors colors = themeColors(palette());
  picture.fill(colors.surface);
  if (timeline_.lanes.empty() || to_ <= from_) return picture;
  QPainter painter(&picture);
  painter.setFont(font());
  for (std::size_t stage = 0; stage < timeline_.lanes.size(); ++stage) {
    const QRectF lane = laneRect(stage);
    painter.setPen(colors.muted);
    painter.drawText(QRectF(0, lane.top(), lane.left() - space::inGroup, lane.height()),
                     Qt::AlignRight | Qt::AlignVCenter, tr("stage %1").arg(stage));
    painter.drawText(QRectF(lane.right() + space::inGroup, lane.top(), width() - lane.right(), lane.height()),
                     Qt::AlignLeft | Qt::AlignVCenter, keepsText(stash_[stage]));
    drawLane(painter, stage, colors);
  }
  if (shows_axis_) drawAxis(painter, colors);
  return picture;
}

void PipelineView::paintEvent(QPaintEvent*) {
  if (picture_.isNull() || picture_.deviceIndependentSize() != QSizeF(size())) picture_ = draw();
  QPainter painter(this);
  painter.drawPixmap(0, 0, picture_);
  const ThemeColors colors = themeColors(palette());
  if (hasFocus()) {
    painter.setPen(colors.accent);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
  const PipelineBlock* block = lit_ ? find(*lit_) : nullptr;
  if (!block || block->end < from_ || block->begin > to_) return;
  const QRectF lit = blockRect(lit_->stage, *block);
  painter.setPen(QPen(colors.text, 2.0));
  painter.drawRect(lit.adjusted(0, 0, std::max(3.0 - lit.width(), -1.0), 0));
}

std::optional<PipelineSpot> PipelineView::spotAt(const QPointF& point) const {
  if (!area().contains(point)) return {};
  const double time = timeAt(point.x());
  for (std::size_t stage = 0; stage < timeline_.lanes.size(); ++stage) {
    const QRectF lane = laneRect(stage);
    if (point.y() < lane.top() || point.y() > lane.bottom()) continue;
    const auto& blocks = timeline_.lanes[stage];
    const auto at = std::lower_bound(blocks.begin(), blocks.end(), time, endsBefore);
    if (at == blocks.end() || at->begin > time) return {};
    return PipelineSpot{stage, at->action, at->micro_step, at->chunk};
  }
  return {};
}

void PipelineView::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons().testFlag(Qt::LeftButton)) {
    const double moved = (event->position().x() - drag_from_.x()) / std::max(area().width(), 1.0) *
                         (drag_range_.second - drag_range_.first);
    Q_EMIT rangeWanted(drag_range_.first - moved, drag_range_.second - moved);
    return;
  }
  Q_EMIT pointed(spotAt(event->position()));
}

void PipelineView::mousePressEvent(QMouseEvent* event) {
  drag_from_ = event->position();
  drag_range_ = range();
}

void PipelineView::mouseDoubleClickEvent(QMouseEvent*) {
  Q_EMIT fitWanted();
}

void PipelineView::leaveEvent(QEvent*) {
  Q_EMIT pointed(std::nullopt);
}

void PipelineView::wheelEvent(QWheelEvent* event) {
  const double turns = event->angleDelta().y() / 120.0;
  if (turns == 0.0 || event->modifiers() != Qt::NoModifier) return event->ignore();
  const double fixed = timeAt(event->position().x());
  const double zoom = std::pow(0.8, turns);
  Q_EMIT rangeWanted(fixed + (from_ - fixed) * zoom, fixed + (to_ - fixed) * zoom);
  event->accept();
}

/// Left and right move along the stage's blocks, up and down to the block that runs at the same time in the next stage.
void PipelineView::keyPressEvent(QKeyEvent* event) {
  const int along = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  const int across = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
  if (event->key() == Qt::Key_A) return Q_EMIT fitWanted();
  if (timeline_.blocks() == 0 || (along == 0 && across == 0)) return QWidget::keyPressEvent(event);
  const PipelineBlock* now = lit_ ? find(*lit_) : nullptr;
  const auto lanes = static_cast<std::ptrdiff_t>(timeline_.lanes.size());
  const auto stage =
      now ? std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(lit_->stage) + across, 0, lanes - 1) : 0;
  const auto& lane = timeline_.lanes[static_cast<std::size_t>(stage)];
  if (lane.empty()) return;
  auto at = now ? std::lower_bound(lane.begin(), lane.end(), now->begin,
                                   [](const PipelineBlock& block, double time) { return block.begin < time; })
                : lane.begin();
  const auto last = std::prev(lane.end());
  at = std::min(at, last);
  if (now && along > 0 && at != last) ++at;
  if (now && along < 0 && at != lane.begin()) --at;
  Q_EMIT pointed(PipelineSpot{static_cast<std::size_t>(stage), at->action, at->micro_step, at->chunk});
}

void PipelineView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) redraw();
  QWidget::changeEvent(event);
}

bool PipelineView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  if (help->pos().x() > area().right())
    QToolTip::showText(help->globalPos(),
                       tr("Forwards whose backward is still to come, at most: the activations that the stage keeps, "
                          "counted in chunks"),
                       this);
  return true;
}

}  // namespace accrue::ui
