// SPDX-License-Identifier: GPL-3.0-or-later
// MarkTrack: marks the non-finite points of a series: a cross (NaN) or an arrow (infinite) at the top of the plot over
// a hairline. Marks on the same pixel are painted once.
#pragma once

#include <vector>

#include "points/series_store.h"
#include "qcp.h"

namespace accrue::ui {

class MarkTrack final : public QCPLayerable {
  Q_OBJECT

 public:
  MarkTrack(QCPAxis* key, const QString& layer);
  void clear() { marks_.clear(); }
  /// Adds the marks of a series within the axis' range.
  void add(const SeriesStore& store, Clock clock, const QColor& color);

 protected:
  QRect clipRect() const override { return key_->axisRect()->rect(); }
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  void draw(QCPPainter* painter) override;

 private:
  struct Placed {
    double x = 0.0;
    MarkKind kind = MarkKind::notANumber;
    QColor color;
  };
  QCPAxis* key_;
  std::vector<Placed> marks_;
};

}  // namespace accrue::ui
