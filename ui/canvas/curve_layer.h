// SPDX-License-Identifier: GPL-3.0-or-later
// CurveLayer: all curves of a plot as one QCPLayerable. Its data are already reduced (at most two points per pixel),
// and its cost depends only on the width of the plot. Hairlines are painted as cosmetic polylines; wider lines segment
// by segment, because outlining a whole wide polyline takes seconds.
#pragma once

#include <optional>
#include <vector>

#include "points/column_reducer.h"
#include "qcp.h"

namespace accrue::ui {

/// A line that breaks at NaN; a single point between gaps is painted as a dot. The pen's width is in logical pixels. On
/// screen a width of up to 1 is one device pixel at every pixel ratio; in an exported picture it scales with the
/// picture.
struct LineItem {
  ReducedLine line;
  QPen pen;
};
/// Vertical hairlines from the smallest to the largest value of each bin.
struct BandItem {
  std::vector<BandColumn> columns;
  double width = 0.0;  ///< of a bin, in data units
  QColor color;
};
/// Area between two lines over the same points: filled, without an edge.
struct AreaItem {
  ReducedLine low;
  ReducedLine high;
  QColor color;
};
/// Single measured points, such as evaluations, or a run's markers along its line.
struct MarkerItem {
  std::vector<double> x;
  std::vector<double> y;
  int seriesIndex = 0;
  qreal size = 7.0;
  QColor color;
  QColor halo = {};              ///< if valid, painted around the marker to separate it from other runs' lines
  std::size_t ownLinesFrom = 0;  ///< number of lines beneath that halo; excludes the run's own
  QColor inside = {};            ///< if valid, the marker is an outline around it
};

/// Sign at the upper edge of the plot, in the line's colour, for a line that leaves there.
struct LeavingItem {
  double x = 0.0;
  QColor color;
};

class CurveLayer final : public QCPLayerable {
  Q_OBJECT

 public:
  CurveLayer(QCPAxis* key, QCPAxis* value, const QString& layer);

  void clear();
  // Painted in this order: areas, bands, lines with halos between them, markers, signs of leaving lines; each in the
  // order of adding.
  void add(AreaItem area) { areas_.push_back(std::move(area)); }
  void add(BandItem band) { bands_.push_back(std::move(band)); }
  void add(LineItem line) { lines_.push_back(std::move(line)); }
  void add(MarkerItem markers) { markers_.push_back(std::move(markers)); }
  void add(const LeavingItem& item) { leaving_.push_back(item); }
  const std::vector<LeavingItem>& leaving() const { return leaving_; }
  std::size_t lineCount() const { return lines_.size(); }
  const std::vector<LineItem>& lines() const { return lines_; }
  /// Number of points to paint, for the plot's badge and the benchmarks.
  std::size_t pointsShown() const;

 protected:
  QRect clipRect() const override;
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
  void draw(QCPPainter* painter) override;

 private:
  void drawArea(QCPPainter* painter, const AreaItem& area);
  void drawBand(QCPPainter* painter, const BandItem& band);
  void drawLine(QCPPainter* painter, const LineItem& item);
  void drawHalos(QCPPainter* painter, std::size_t line) const;
  void drawLeaving(QCPPainter* painter, const LeavingItem& item) const;
  void drawMarkers(QCPPainter* painter, const MarkerItem& item) const;
  /// Painted position of a point of an item; empty if it is not painted.
  std::optional<QPointF> placeOf(const MarkerItem& item, std::size_t point) const;
  void flush(QCPPainter* painter, const QPen& pen);
  void stroke(QCPPainter* painter, const QPen& pen);
  void cutIntoDashes(const QPen& pen);

  QCPAxis* key_;
  QCPAxis* value_;
  std::vector<AreaItem> areas_;
  std::vector<BandItem> bands_;
  std::vector<LineItem> lines_;
  std::vector<MarkerItem> markers_;
  std::vector<LeavingItem> leaving_;
  QPolygonF run_;  // reused from frame to frame
  QVector<QLineF> pieces_;
  QVector<QRectF> bars_;
};

}  // namespace accrue::ui
