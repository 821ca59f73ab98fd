// SPDX-License-Identifier: GPL-3.0-or-later
#include "rank_cells.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <limits>

#include "kit/text.h"
#include "kit/theme.h"
#include "memory_bar.h"

namespace accrue::ui {

namespace {

constexpr int gap = 2;        ///< between tensor ranks
constexpr int group_gap = 8;  ///< between replicas, and between stages
constexpr QSize largest_cell(44, 36);
constexpr int least_width = 24;
constexpr int memory_height = 4;
constexpr int letter_width = 36;  ///< of a cell with room for an axis's first letter

/// Axes differ by more than their colour.
Qt::PenStyle axisLine(Axis axis) {
  return axis == Axis::tensor ? Qt::SolidLine : axis == Axis::data ? Qt::DashLine : Qt::DotLine;
}

QColor phaseColor(const ThemeColors& colors, const std::string& phase) {
  if (phase == "forward") return colors.forward;
  if (phase == "backward") return colors.backward;
  if (phase == "step") return colors.optimizerStep;
  if (phase == "reduce") return colors.collective;
  return colors.waiting;
}

}  // namespace

QColor rankColor(const ThemeColors& colors, const RankGrid& grid, const GridCoordinate& at) {
  const double shades = static_cast<double>(std::max<std::int64_t>(grid.tensor - 1, 1));
  const double strength = 0.62 - 0.40 * static_cast<double>(at.tensor) / shades;
  return mixed(seriesColor(colors, static_cast<int>(at.pipeline % seriesColorCount)), colors.surface, strength);
}

std::vector<Axis> sharedAxes(const RankGrid& grid) {
  std::vector<Axis> axes;
  if (grid.tensor > 1) axes.push_back(Axis::tensor);
  if (grid.data > 1) axes.push_back(Axis::data);
  if (grid.pipeline > 1) axes.push_back(Axis::pipeline);
  return axes;
}

RankCells::RankCells(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("rankCells"));
  setFont(tabularFont(TextSize::small));
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Ranks"));
}

void RankCells::setGrid(const RankGrid& grid) {
  if (grid == grid_ && !cells_.empty()) return;
  grid_ = grid;
  hovered_.reset();
  arrange();
  setCurrent(current_);
  update();
}

void RankCells::setMemory(const std::vector<RankCost>& stages) {
  memory_ = stages;
  fullest_ = 0;
  for (const RankCost& each : stages) fullest_ = std::max(fullest_, each.total() - each.process);
  update();
}

void RankCells::setStates(const std::map<std::int64_t, RankStatus>& states) {
  states_ = states;
  update();
}

void RankCells::setCurrent(std::int64_t rank) {
  current_ = std::clamp<std::int64_t>(rank, 0, std::min(grid_.world(), most_drawn) - 1);
  Q_EMIT currentChanged(current());
  update();
}

/// Stages are below one another, with their replicas side by side, wrapped at the width. If a stage is one rank, stages
/// are side by side.
std::vector<QRect> RankCells::arranged(int width) const {
  const std::int64_t drawn = std::min(grid_.world(), most_drawn);
  const bool single = grid_.tensor * grid_.data == 1;
  const auto across = std::min<std::int64_t>(single ? grid_.pipeline : grid_.tensor * grid_.data, most_drawn);
  const auto groups = static_cast<int>(single ? across : std::max<std::int64_t>(across / grid_.tensor, 1));
  const int gaps = (static_cast<int>(across) - groups) * gap + (groups - 1) * group_gap;
  const int wide = std::clamp((width - gaps) / static_cast<int>(across), least_width, largest_cell.width());
  const int high = std::max(fontMetrics().height() + 10, std::min(wide * 5 / 6, largest_cell.height()));
  std::vector<QRect> cells;
  int x = 0, y = 0;
  for (std::int64_t rank = 0; rank < drawn; ++rank) {
    const GridCoordinate at = grid_.coordinate(rank);
    const bool new_stage = rank > 0 && !single && at.pipeline != grid_.coordinate(rank - 1).pipeline;
    if (rank > 0 && !new_stage) x += wide + (at.tensor == 0 ? group_gap : gap);
    // A tensor group stays in one line if it fits.
    const std::int64_t together = at.tensor == 0 && grid_.tensor * (wide + gap) <= width ? grid_.tensor : 1;
    const bool full = x > 0 && x + static_cast<int>(together) * (wide + gap) - gap > width;
    if (new_stage || full) {
      y += high + (new_stage ? group_gap : gap);
      x = 0;
    }
    cells.emplace_back(x, y, wide, high);
  }
  return cells;
}

QRect RankCells::cellRect(std::int64_t rank) const {
  return cells_.at(static_cast<std::size_t>(rank));
}

void RankCells::arrange() {
  cells_ = arranged(width());
  setFixedHeight(cells_.back().bottom() + 2);
}

QSize RankCells::sizeHint() const {
  return {8 * least_width, height()};
}

QSize RankCells::minimumSizeHint() const {
  return {3 * (least_width + gap), 0};
}

void RankCells::resizeEvent(QResizeEvent* event) {
  if (event->size().width() != event->oldSize().width() && !cells_.empty()) arrange();
}

RankList RankCells::lit(Axis axis) const {
  if ((!hovered_ && !hasFocus()) || grid_.world() > most_grouped) return {};
  RankList ranks = grid_.group(axis, current());
  std::erase_if(ranks, [](std::int64_t rank) { return rank >= most_drawn; });
  return ranks;
}

std::optional<std::int64_t> RankCells::rankAt(const QPoint& at) const {
  for (std::size_t rank = 0; rank < cells_.size(); ++rank)
    if (cells_[rank].contains(at)) return static_cast<std::int64_t>(rank);
  return std::nullopt;
}

void RankCells::hover(std::optional<std::int64_t> rank) {
  if (rank == hovered_) return;
  hovered_ = rank;
  Q_EMIT currentChanged(current());
  update();
}

void RankCells::mouseMoveEvent(QMouseEvent* event) {
  hover(rankAt(event->position().toPoint()));
}

void RankCells::mousePressEvent(QMouseEvent* event) {
  if (const auto rank = rankAt(event->position().toPoint())) setCurrent(*rank);
}

void RankCells::leaveEvent(QEvent*) {
  hover(std::nullopt);
}

void RankCells::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  setCurrent(current_);
}

void RankCells::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

/// Moves to the nearest cell in a direction.
void RankCells::moveTo(int dx, int dy) {
  const QPoint from = cellRect(current_).center();
  std::int64_t best = current_;
  int nearest = std::numeric_limits<int>::max();
  for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
    const QPoint way = cells_[rank].center() - from;
    const int ahead = way.x() * dx + way.y() * dy, aside = std::abs(way.x() * dy) + std::abs(way.y() * dx);
    if (ahead <= 0 || ahead + 4 * aside >= nearest) continue;
    nearest = ahead + 4 * aside;
    best = static_cast<std::int64_t>(rank);
  }
  setCurrent(best);
}

void RankCells::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
      return moveTo(-1, 0);
    case Qt::Key_Right:
      return moveTo(1, 0);
    case Qt::Key_Up:
      return moveTo(0, -1);
    case Qt::Key_Down:
      return moveTo(0, 1);
    case Qt::Key_Home:
      return setCurrent(0);
    case Qt::Key_End:
      return setCurrent(most_drawn);
    default:
      QWidget::keyPressEvent(event);
  }
}

/// Axis along which a highlighted rank belongs to the current one.
std::optional<Axis> RankCells::axisTo(std::int64_t rank) const {
  for (const Axis axis : sharedAxes(grid_)) {
    const RankList group = lit(axis);
    if (rank != current() && std::ranges::count(group, rank) > 0) return axis;
  }
  return std::nullopt;
}

void RankCells::paintState(QPainter& painter, const QRect& cell, const RankStatus& status) const {
  const ThemeColors colors = themeColors(palette());
  if (status.lost) {
    painter.fillRect(cell, QBrush(colors.failed, Qt::BDiagPattern));
    painter.setPen(QPen(colors.failed, 2));
    painter.drawLine(cell.topLeft() + QPoint(4, 4), cell.bottomRight() - QPoint(4, 4));
    painter.drawLine(cell.bottomLeft() + QPoint(4, -4), cell.topRight() + QPoint(-4, 4));
  } else if (!status.phase.empty() || !status.device.empty()) {
    const QRect bar = cell.adjusted(1, cell.height() - 5, -1, -1);
    painter.fillRect(bar, colors.surface);
    painter.fillRect(bar.adjusted(1, 1, -1, 0), phaseColor(colors, status.phase));
  }
}

void RankCells::paintCell(QPainter& painter, std::int64_t rank, const std::optional<Axis>& axis) const {
  const ThemeColors colors = themeColors(palette());
  const QRect cell = cellRect(rank);
  const bool pointed = rank == current();
  const bool dim = !lit(Axis::world).empty() && !pointed && !axis;
  QColor fill = rankColor(colors, grid_, grid_.coordinate(rank));
  if (dim) fill = mixed(fill, colors.window, 0.35);
  painter.fillRect(cell, fill);
  const auto stage = static_cast<std::size_t>(grid_.coordinate(rank).pipeline);
  if (stage < memory_.size())
    paintMemory(painter, QRect(cell.left() + 2, cell.top() + 2, cell.width() - 4, memory_height), memory_[stage],
                fullest_, colors);
  if (const auto found = states_.find(rank); found != states_.end()) paintState(painter, cell, found->second);
  const bool dark = contrastRatio(Qt::black, fill) > contrastRatio(Qt::white, fill);
  painter.setPen(dark ? Qt::black : Qt::white);
  painter.drawText(cell, Qt::AlignCenter, QString::number(rank));
  if (!axis && !pointed) return;
  const QColor ink = axis ? axisColor(colors, fromView(to_string(*axis))) : hasFocus() ? colors.accent : colors.text;
  painter.setPen(QPen(ink, 2, axis ? axisLine(*axis) : Qt::SolidLine));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(cell.adjusted(1, 1, -1, -1));
  if (!axis || cell.width() < letter_width) return;
  painter.setPen(dark ? Qt::black : Qt::white);
  painter.drawText(cell.adjusted(5, memory_height + 2, -4, -2), Qt::AlignTop | Qt::AlignRight,
                   fromView(to_string(*axis)).left(1).toUpper());
}

void RankCells::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  for (std::size_t rank = 0; rank < cells_.size(); ++rank)
    paintCell(painter, static_cast<std::int64_t>(rank), axisTo(static_cast<std::int64_t>(rank)));
}

}  // namespace accrue::ui
