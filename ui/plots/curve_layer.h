// SPDX-License-Identifier: GPL-3.0-or-later
// CurveLayer: all curves of a plot as one QCPLayerable. It is given data that are already reduced (at most two points a
// pixel) and paints them so that its cost depends on the width of the plot alone: hairlines as cosmetic polylines, and
// whatever is wider segment by segment, because the outline of a whole wide polyline costs seconds.
#pragma once

#include <vector>

#include "models/column_reducer.h"
#include "plots/qcp.h"

namespace accrue::ui {

/// Lines break at NaN; a point alone between gaps is painted as a dot. The pen's width is in logical pixels; on screen
/// one of up to 1 is a hairline of one device pixel at every pixel ratio, and in a picture it grows with the picture.
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
/// Measured points that stand alone, such as evaluations; or a run's markers along its line.
struct MarkerItem {
  std::vector<double> x;
  std::vector<double> y;
  int seriesIndex = 0;
  qreal size = 7.0;
  QColor color;
  QColor halo;  ///< painted around it where valid, so that it stands clear of lines
};

class CurveLayer final : public QCPLayerable {
  Q_OBJECT

 public:
  CurveLayer(QCPAxis* key, QCPAxis* value, const QString& layer);

  void clear();
  // Painted in this order: bands, lines, markers; each in the order of adding.
  void add(BandItem band) { bands_.push_back(std::move(band)); }
  void add(LineItem line) { lines_.push_back(std::move(line)); }
  void add(MarkerItem markers) { markers_.push_back(std::move(markers)); }
  /// Points handed over, for the frame's account.
  std::size_t pointsShown() const;

 protected:
  QRect clipRect() const override;
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
  void draw(QCPPainter* painter) override;

 private:
  void drawBand(QCPPainter* painter, const BandItem& band);
  void drawLine(QCPPainter* painter, const LineItem& item);
  void drawMarkers(QCPPainter* painter, const MarkerItem& item) const;
  void flush(QCPPainter* painter, const QPen& pen);
  void stroke(QCPPainter* painter, const QPen& pen);
  void cutIntoDashes(const QPen& pen);

  QCPAxis* key_;
  QCPAxis* value_;
  std::vector<BandItem> bands_;
  std::vector<LineItem> lines_;
  std::vector<MarkerItem> markers_;
  QPolygonF run_;  // reused from frame to frame
  QVector<QLineF> pieces_;
  QVector<QRectF> bars_;
};

}  // namespace accrue::ui
