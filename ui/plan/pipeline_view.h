// SPDX-License-Identifier: GPL-3.0-or-later
// PipelineView: a pipeline's window as blocks, one lane per stage: a forward or backward with its micro-batch's number,
// a mark at its foot for the chunk, idle time hatched, and beside each lane the maximum stash of the stage. A planned
// window is hollow, a measured one solid.
#pragma once

#include <QPixmap>
#include <QWidget>
#include <optional>
#include <utility>
#include <vector>

#include "accrue/run/window/pipeline_timeline.h"
#include "kit/theme_colors.h"

namespace accrue::ui {

/// Identity of a block on both timelines.
struct PipelineSpot {
  std::size_t stage = 0;
  PipelineAction action = PipelineAction::forward;
  std::int64_t micro_step = 0;  ///< in the window, from 0
  std::int64_t chunk = 0;
  bool operator==(const PipelineSpot&) const = default;
};

/// Thread: GUI.
class PipelineView : public QWidget {
  Q_OBJECT

 public:
  enum class Kind { planned, measured };
  PipelineView(Kind kind, QWidget* parent = nullptr);

  /// `steps`: begin and end of the optimizer's steps by stage; `timed`: times are seconds, not multiples of a forward.
  void setTimeline(const PipelineTimeline& timeline, bool timed,
                   const std::vector<std::vector<std::pair<double, double>>>& steps = {});
  /// Sets whether time ticks are below the lanes.
  void setShowsAxis(bool on);
  const PipelineTimeline& timeline() const { return timeline_; }
  /// Sets the time range of the lanes.
  void setRange(double from, double to);
  std::pair<double, double> range() const { return {from_, to_}; }
  /// Sets the marked block, here and in the other half.
  void setLit(const std::optional<PipelineSpot>& spot);
  const std::optional<PipelineSpot>& lit() const { return lit_; }
  /// Returns the block; nullptr if this window has none.
  const PipelineBlock* find(const PipelineSpot& spot) const;
  /// Rectangle of a painted block, in this widget's pixels.
  QRectF blockRect(std::size_t stage, const PipelineBlock& block) const;
  /// Colour of a block; only of its outline if it is hollow.
  QColor fill(PipelineAction action, const ThemeColors& colors) const;
  QColor outline(PipelineAction action, const ThemeColors& colors) const;
  std::int64_t chunks() const { return chunks_; }
  /// Height of the ticks below the lanes, in logical pixels; 0 without them.
  int axisHeight() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void pointed(const std::optional<accrue::ui::PipelineSpot>& spot);
  /// The user zoomed or moved; the panel keeps both halves on one range.
  void rangeWanted(double from, double to);
  void fitWanted();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF area() const;
  QRectF laneRect(std::size_t stage) const;
  double xOf(double time) const;
  double timeAt(double x) const;
  std::optional<PipelineSpot> spotAt(const QPointF& point) const;
  void redraw();
  QPixmap draw() const;
  void drawLane(QPainter& painter, std::size_t stage, const ThemeColors& colors) const;
  void drawBlock(QPainter& painter, const PipelineBlock& block, const QRectF& rect, const ThemeColors& colors) const;
  void drawShares(QPainter& painter, std::size_t stage, const QRectF& lane, const ThemeColors& colors) const;
  void drawAxis(QPainter& painter, const ThemeColors& colors) const;
  QString keepsText(std::int64_t count) const;

  Kind kind_;
  PipelineTimeline timeline_;
  std::vector<std::vector<std::pair<double, double>>> steps_;
  std::vector<std::int64_t> stash_;
  std::int64_t chunks_ = 1;
  bool timed_ = false;
  bool shows_axis_ = true;
  double from_ = 0.0;
  double to_ = 1.0;
  std::optional<PipelineSpot> lit_;
  QPixmap picture_;  ///< without the mark; null: draw again
  QPointF drag_from_;
  std::pair<double, double> drag_range_;
};

}  // namespace accrue::ui
