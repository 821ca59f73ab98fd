// SPDX-License-Identifier: GPL-3.0-or-later
// PlotArea: loss, learning rate and sync strip, stacked, on one X axis. The window sets the runs to show and calls
// tick() once per frame; the area draws what changed.
#pragma once

#include <QImage>
#include <QList>
#include <QPointer>
#include <QString>
#include <QStringList>
#include <QWidget>
#include <memory>
#include <vector>

#include "models/clock.h"
#include "models/run_series.h"

class QSplitter;
class QStackedLayout;
class QLabel;

namespace accrue::ui {

class LossPlot;
class LearningRatePlot;
class SyncStrip;
class PlotView;
class PlotHub;
struct ExportPart;

/// Thread: GUI.
class PlotArea : public QWidget {
  Q_OBJECT

 public:
  explicit PlotArea(QWidget* parent = nullptr);
  ~PlotArea() override;

  /// The visible overlays, bottom first.
  void setRuns(const QList<RunSeries*>& runs);
  QList<RunSeries*> runs() const;
  /// The run that the sync strip shows and whose curves are on top.
  void setFocusedRun(RunSeries* run);
  RunSeries* focusedRun() const;

  void setClock(Clock clock);
  Clock clock() const;
  void setLogY(bool on);
  bool logY() const;
  /// The weight of the past, 0 (off) to 0.999.
  void setSmoothing(double weight);
  double smoothing() const;
  void setFollowLive(bool on);
  bool followLive() const;
  /// Shows all data of the visible runs.
  void fit();
  void zoomX(double factor);
  void panX(double fraction);
  void zoomBack();
  void zoomForward();
  /// Brings a position into view and puts the cursor on it.
  void goTo(double x);

  /// Called once per frame by the window's 33 ms timer. Draws only visible plots whose data or view changed.
  void tick();

  /// All plots as one picture, at a pixel ratio.
  QImage renderImage(qreal devicePixelRatio = 1.0) const;
  /// PNG (3 pixels a point), SVG or PDF by the file's suffix. Empty on success, else a sentence that says why.
  QString exportImage(const QString& file) const;
  /// Every point of the visible runs on every clock, with the smoothed column and its formula. UTF-8.
  QByteArray exportCsv() const;
  /// One sentence a plot, for assistive technology and the narrator.
  QStringList summaries() const;
  QString emptyText() const;
  void setEmptyText(const QString& text);

 Q_SIGNALS:
  /// The cursor moved: the X position and a line per visible run ("N=4  loss 2.311  lr 3.0e-3"). Empty when it left.
  void cursorMoved(const QString& position, const QStringList& lines);
  /// The user changed these with a key or the mouse; a tool bar mirrors them.
  void clockChanged(accrue::ui::Clock clock);
  void logYChanged(bool on);
  void smoothingChanged(double weight);
  void followLiveChanged(bool on);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void connectSignals();
  bool handleKey(int key, Qt::KeyboardModifiers modifiers);
  void showEmptyState();
  void reportCursor();
  std::vector<ExportPart> exportParts() const;
  int exportWidthNow() const;
  std::vector<PlotView*> views() const;

  std::unique_ptr<PlotHub> hub_;
  QStackedLayout* stack_ = nullptr;
  QWidget* emptyPage_ = nullptr;
  QLabel* emptyLabel_ = nullptr;
  QSplitter* splitter_ = nullptr;
  LossPlot* loss_ = nullptr;
  LearningRatePlot* learningRate_ = nullptr;
  SyncStrip* strip_ = nullptr;
};

}  // namespace accrue::ui
