// SPDX-License-Identifier: GPL-3.0-or-later
// MetricPlot: one measured quantity of every shown run, one line each, or one line per rank if ranks report it. Its
// axis starts at zero; non-finite values are marked.
#pragma once

#include <vector>

#include "canvas/plot_view.h"
#include "points/column_reducer.h"

namespace accrue::ui {

class CurveLayer;
class MarkTrack;

class MetricPlot : public PlotView {
  Q_OBJECT

 public:
  /// Name of the plot, and its quantity in a sentence: "gradient norm".
  struct Words {
    QString title;
    QString unit;
    QString quantity;
  };

  MetricPlot(PlotHub& hub, int number, const QString& objectName, Metric metric, Words words,
             QWidget* parent = nullptr);
  QString summary() const override;
  QString valueAt(const RunSeries& run, double x) const override;
  PlotTable table() const override;

 protected:
  /// A line of a run; named if it has several.
  struct Curve {
    const SeriesStore* store = nullptr;
    QString name = {};
    int part = 0;            ///< lines of different parts have different dashes
    bool evaluated = false;  ///< paler, with marked points
  };
  virtual std::vector<Curve> curvesOf(const RunSeries& run) const;
  /// Returns one line per name, and the same for evaluations.
  static std::vector<Curve> namedCurves(const PartSeries& ofUpdates, const PartSeries& ofEvaluations);
  /// Adds items beneath a run's lines, and extends the range of Y by them.
  virtual void addBeneath(const RunSeries&, double, MinMax&) {}
  /// Adds items above a run's lines.
  virtual void addAbove(const RunSeries&) {}
  /// Sets the range of Y for the drawn values; empty: none. It begins at 0.
  virtual void fitY(const MinMax& extent);
  void rebuild(double pixels) override;
  Readout readout(double x) const override;

  CurveLayer& curves() { return *curves_; }

 private:
  QString cellText(const Curve& curve, double x) const;
  /// Whether the run's updates lack a value that all updates of runs trained here have.
  bool isUnlogged(const RunSeries& run) const;

  CurveLayer* curves_;
  MarkTrack* marks_;
  Metric metric_;
  Words words_;
  std::size_t notFinite_ = 0;  ///< values of the shown runs
};

/// Memory of each rank: of its device, or resident memory if it computes on the CPU.
class MemoryPlot final : public MetricPlot {
  Q_OBJECT

 public:
  MemoryPlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent = nullptr);

 protected:
  std::vector<Curve> curvesOf(const RunSeries& run) const override;
};

/// Parts of the loss, one line per part, and the parts of evaluations.
class LossPartsPlot final : public MetricPlot {
  Q_OBJECT

 public:
  LossPartsPlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent = nullptr);

 protected:
  std::vector<Curve> curvesOf(const RunSeries& run) const override;
};

/// A program's other measurements, one line per name.
class ScalarsPlot final : public MetricPlot {
  Q_OBJECT

 public:
  ScalarsPlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent = nullptr);

 protected:
  std::vector<Curve> curvesOf(const RunSeries& run) const override;
};

/// Loss scale after each update, on an axis of powers of two; skipped updates are marked.
class LossScalePlot final : public MetricPlot {
  Q_OBJECT

 public:
  LossScalePlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent = nullptr);

 protected:
  void addAbove(const RunSeries& run) override;
  void fitY(const MinMax& extent) override;
};

}  // namespace accrue::ui
