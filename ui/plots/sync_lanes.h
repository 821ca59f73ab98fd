// SPDX-License-Identifier: GPL-3.0-or-later
// SyncLanes: all spans of all ranks as one QCPLayerable. A rank has one lane; where ranks communicate over more than
// one axis, it has a lane for what it computes and under it one for each axis. Spans that are wide enough are painted
// as blocks; if many fall on one pixel, each pixel column shows shares of its time, so that the cost depends on the
// number of pixels.
#pragma once

#include <QPointer>

#include "kit/theme_colors.h"
#include "lane_clock.h"
#include "qcp.h"
#include "series/run_series.h"

namespace accrue::ui {

class SyncLanes final : public QCPLayerable {
  Q_OBJECT

 public:
  SyncLanes(QCPAxis* key, QCPAxis* value, const QString& layer);

  struct Row {
    std::int64_t rank = 0;
    const Lane* lane = nullptr;
    const AxisUse* use = nullptr;  ///< what is shown is the communication over this axis; none: everything else
  };
  /// The lanes of a run, by rank and then axis; they point into its timeline as it is now.
  static std::vector<Row> rowsOf(const RunSeries& run);

  void show(const RunSeries* run, Clock clock, const ThemeColors& colors);
  /// Lane i lies between i and i + 1 of Y, the first on top.
  int laneCount() const { return run_ ? static_cast<int>(rowsOf(*run_).size()) : 0; }
  /// A lane is never lower than `leastLane`; with the space under it, it takes this much.
  static constexpr double leastLane = 14.0;
  static constexpr double laneGap = 4.0;
  /// True while columns show shares of their time instead of blocks.
  bool showsShares() const { return shares_; }
  /// Windows that such a column stands for; 0 where it stands for micro-steps.
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
  /// Micro-steps are too narrow on this lane to be told apart as blocks.
  bool isDense(const LaneClock& clock) const;
  /// Where columns of shares begin and end, on the clock.
  std::vector<double> columnEdges(const LaneClock& clock) const;
  void drawCollectives(QCPPainter* painter, const Row& row, const LaneClock& clock, const QRectF& rect);
  void hatch(QCPPainter* painter, double fromTime, double toTime, const LaneClock& clock, const QRectF& rect);
  /// Lanes of their own show what is communicated.
  bool byAxis() const { return run_ && run_->timeline().axes().size() > 1; }
  void drawBoundaries(QCPPainter* painter);
  /// What was painted; empty where nothing of it is in the lane.
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
