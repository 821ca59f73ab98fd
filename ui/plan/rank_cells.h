// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <map>
#include <optional>
#include <vector>

#include "accrue/run/rank_cost.h"
#include "accrue/run/rank_grid.h"
#include "series/rank_status.h"

namespace accrue::ui {

struct ThemeColors;

/// The ranks of a run as cells: the hue says the stage, the shade the tensor rank, a bar at the top what the rank holds
/// by kind, where the fullest rank's ends at the cell's edge, and one at the bottom what it does now.
/// The cell that is pointed at, or that the arrow keys have reached, lights its groups along every axis.
class RankCells : public QWidget {
  Q_OBJECT

 public:
  static constexpr std::int64_t most_drawn = 64;
  /// Beyond it the groups of a rank are too long to be looked for.
  static constexpr std::int64_t most_grouped = 4096;

  explicit RankCells(QWidget* parent = nullptr);

  void setGrid(const RankGrid& grid);
  const RankGrid& grid() const { return grid_; }
  /// What the ranks of each stage hold by the plan.
  void setMemory(const std::vector<RankCost>& stages);
  /// What the ranks of a live run do; empty without one.
  void setStates(const std::map<std::int64_t, RankStatus>& states);
  /// The rank pointed at; else the one that was last.
  std::int64_t current() const { return hovered_.value_or(current_); }
  void setCurrent(std::int64_t rank);
  /// The drawn ranks of the current one's group along an axis, as long as they are lit.
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
  /// Places the cells and takes the height that they need.
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
  std::int64_t fullest_ = 0;      ///< bytes of the fullest rank, its process left out
  std::map<std::int64_t, RankStatus> states_;
  std::int64_t current_ = 0;
  std::optional<std::int64_t> hovered_;
};

/// The colour of a rank's cell.
QColor rankColor(const ThemeColors& colors, const RankGrid& grid, const GridCoordinate& at);
/// The axes along which a rank of a grid has others.
std::vector<Axis> sharedAxes(const RankGrid& grid);

}  // namespace accrue::ui
