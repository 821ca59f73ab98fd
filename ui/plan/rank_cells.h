// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <map>
#include <optional>
#include <vector>

#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/cost/rank_grid.h"
#include "series/rank_status.h"

namespace accrue::ui {

struct ThemeColors;

/// Ranks of a run as cells: the hue shows the stage, the shade the tensor rank, a bar at the top the memory by kind
/// (full width is the fullest rank), and one at the bottom the current activity.
/// The cell under the pointer, or selected by arrow keys, highlights its groups along every axis.
class RankCells : public QWidget {
  Q_OBJECT

 public:
  static constexpr std::int64_t most_drawn = 64;
  /// Maximum number of ranks; beyond it groups are too long to search.
  static constexpr std::int64_t most_grouped = 4096;

  explicit RankCells(QWidget* parent = nullptr);

  void setGrid(const RankGrid& grid);
  const RankGrid& grid() const { return grid_; }
  /// Sets the planned memory of each stage's ranks.
  void setMemory(const std::vector<RankCost>& stages);
  /// Sets the activity of a live run's ranks; empty without one.
  void setStates(const std::map<std::int64_t, RankStatus>& states);
  /// The rank under the pointer; else the last one.
  std::int64_t current() const { return hovered_.value_or(current_); }
  void setCurrent(std::int64_t rank);
  /// Drawn ranks of the current one's group along an axis, while highlighted.
  RankList lit(Axis axis) const;
  QRect cellRect(std::int64_t rank) const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void currentChanged(std::int64_t rank);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  std::vector<QRect> arranged(int width) const;
  /// Arranges the cells and takes the necessary height.
  void arrange();
  std::optional<std::int64_t> rankAt(const QPoint& at) const;
  void hover(std::optional<std::int64_t> rank);
  void moveTo(int dx, int dy);
  void paintCell(QPainter& painter, std::int64_t rank, const std::optional<Axis>& axis) const;
  void paintState(QPainter& painter, const QRect& cell, const RankStatus& status) const;
  std::optional<Axis> axisTo(std::int64_t rank) const;

  RankGrid grid_;
  std::vector<QRect> cells_;      ///< by rank
  std::vector<RankCost> memory_;  ///< by stage
  std::int64_t fullest_ = 0;      ///< bytes of the fullest rank, without its process
  std::map<std::int64_t, RankStatus> states_;
  std::int64_t current_ = 0;
  std::optional<std::int64_t> hovered_;
};

/// Colour of a rank's cell.
QColor rankColor(const ThemeColors& colors, const RankGrid& grid, const GridCoordinate& at);
/// Axes along which a rank of the grid has peers.
std::vector<Axis> sharedAxes(const RankGrid& grid);

}  // namespace accrue::ui
