// SPDX-License-Identifier: GPL-3.0-or-later
// SyncLanes: all spans of all ranks as one QCPLayerable. A rank has one lane. If ranks communicate over more than one
// axis, it has a lane for computation and under it one for each axis. Wide spans are painted as blocks. If many fall on
// one pixel, each pixel column shows shares of its time, so the cost depends on the number of pixels.
#pragma once

#include <QPointer>

#include "canvas/lane_clock.h"
#include "canvas/qcp.h"
#include "kit/theme_colors.h"
#include "series/run_series.h"

namespace accrue::ui {

class SyncLanes final : public QCPLayerable {
  Q_OBJECT

 public:
  SyncLanes(QCPAxis* key, QCPAxis* value, const QString& layer);

  struct Row {
    std::int64_t rank = 0;
    const Lane* lane = nullptr;
    const AxisUse* use = nullptr;  ///< shows communication over this axis; none: everything else
  };
  /// Lanes of a run, by rank and then axis; they point into its current timeline.
  static std::vector<Row> rowsOf(const RunSeries& run);

  void show(const RunSeries* run, Clock clock, const ThemeColors& colors);
  /// Lane i is between i and i + 1 of Y, the first on top.
  int laneCount() const { return run_ ? static_cast<int>(rowsOf(*run_).size()) : 0; }
  /// Minimum height of a lane; with the space under it, it takes this much.
  static constexpr double leastLane = 14.0;
  static constexpr double laneGap = 4.0;
  /// Whether columns show shares of their time instead of blocks.
  bool showsShares() const { return shares_; }
  /// Number of windows per such column; 0 if it represents micro-steps.
  std::size_t windowsPerColumn() const { return windowsPerColumn_; }

 protected:
  QRect clipRect() const override { return key_->axisRect()->rect(); }
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
  void draw(QCPPainter* painter) override;

 private:
  QRectF laneRect(int lane) const;
  LaneClock clockOf(const Lane& lane) const { return {lane, run_->series(Metric::microLoss).clocks(), clock_}; }
  void drawSpans(QCPPainter* painter, const SpanTrack& spans, const QColor& color, const LaneClock& clock,
                 const QRectF& rect);
  void drawRow(QCPPainter* painter, const Row& row, const QRectF& rect);
  void drawBlocks(QCPPainter* painter, const Lane& lane, const LaneClock& clock, const QRectF& rect);
  void drawShares(QCPPainter* painter, const Row& row, const LaneClock& clock, const QRectF& rect);
  /// Whether micro-steps on this lane are too narrow for separate blocks.
  bool isDense(const LaneClock& clock) const;
  /// Edges of the columns of shares, on the clock.
  std::vector<double> columnEdges(const LaneClock& clock) const;
  void drawCollectives(QCPPainter* painter, const Row& row, const LaneClock& clock, const QRectF& rect);
  void hatch(QCPPainter* painter, double fromTime, double toTime, const LaneClock& clock, const QRectF& rect);
  /// Whether communication has its own lanes.
  bool byAxis() const { return run_ && run_->timeline().axes().size() > 1; }
  void drawBoundaries(QCPPainter* painter);
  /// Returns the painted rectangle; empty if none of it is in the lane.
  QRectF fill(QCPPainter* painter, const QColor& color, double fromTime, double toTime, const LaneClock& clock,
              const QRectF& rect);

  QCPAxis* key_;
  QCPAxis* value_;
  QPointer<const RunSeries> run_;
  Clock clock_ = Clock::update;
  ThemeColors colors_;
  bool shares_ = false;
  std::size_t windowsPerColumn_ = 0;
};

}  // namespace accrue::ui
