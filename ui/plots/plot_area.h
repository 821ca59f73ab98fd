// SPDX-License-Identifier: GPL-3.0-or-later
// PlotArea: plots stacked on one X axis; initially loss, learning rate and sync strip. The window sets the shown runs
// and calls tick() once per frame; the area draws changes.
#pragma once

#include <QBasicTimer>
#include <QImage>
#include <QList>
#include <QPointer>
#include <QString>
#include <QStringList>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "kit/clock.h"
#include "plot_export.h"
#include "series/run_series.h"
#include "series/series_export.h"

class QSplitter;
class QStackedLayout;
class QLabel;

namespace accrue::ui {

class LossPlot;
class PlotView;
class PartingMark;
class PlotHub;
class RunKey;

/// Object name of the plot of update norms.
inline constexpr const char* updateNormPlot = "updateNormPlot";

/// Thread: GUI.
class PlotArea : public QWidget {
  Q_OBJECT

 public:
  explicit PlotArea(QWidget* parent = nullptr);
  ~PlotArea() override;

  /// Sets the visible overlays, bottom first.
  void setRuns(const QList<RunSeries*>& runs);
  QList<RunSeries*> runs() const;
  /// Sets the run of the sync strip, whose curves are on top.
  void setFocusedRun(RunSeries* run);
  RunSeries* focusedRun() const;

  const std::vector<PlotView*>& allViews() const { return all_; }
  /// Returns the object names of the shown plots, from the top.
  QStringList shownPlots() const;
  /// Ignores unknown names; without a known one the first plots are shown.
  void setShownPlots(const QStringList& names);
  /// Adds a plot below the loss, unless it is shown already; ignores an unknown name.
  void showBesideLoss(const QString& name);
  bool isPlotShown(const PlotView* view) const;
  /// A new plot comes last. The last shown plot cannot be hidden.
  void setPlotShown(PlotView* view, bool on);
  /// Moves a plot; a negative number moves it up.
  void movePlot(PlotView* view, int by);
  /// Opens a plot as a table, in its own window.
  void showTable(PlotView* view);
  /// Restores the initial heights of the shown plots.
  void resetHeights();
  /// The plot with the focus, else the first.
  PlotView* currentView() const;

  void setClock(Clock clock);
  Clock clock() const;
  void setLogY(bool on);
  bool logY() const;
  /// Weight of the past, 0 (off) to 0.999.
  void setSmoothing(double weight);
  double smoothing() const;
  /// Sets whether the loss of several seeds is drawn as one curve with a band.
  void setGroupSeeds(bool on);
  bool groupSeeds() const;
  void setFollowLive(bool on);
  bool followLive() const;
  /// Shows all data of the visible runs.
  void fit();
  void zoomX(double factor);
  void panX(double fraction);
  /// Shows the window of the focused run under the cursor; without a cursor the newest.
  void zoomToWindow();
  void stepWindow(int direction);
  void zoomBack();
  void zoomForward();
  /// Brings a position into view and puts the cursor on it.
  void goTo(double x);

  /// Marks the point where two curves part, with the differences of their runs; empty removes the mark.
  void setParting(const std::optional<ClockPoint>& at, const QStringList& chips);

  /// Shows a key of run colours above the plots, for a window without a table of runs.
  void setKeyShown(bool on);

  /// Called once per frame by the window's 33 ms timer. Draws only visible plots whose data or view changed. After a
  /// change of the view it draws all at once, so that their axes agree on screen. After new data alone it draws one per
  /// turn of the event loop, so that input waits for one plot at most.
  void tick();
  /// Draws all changed plots at once.
  void drawAll();

  /// All plots as one picture, at a pixel ratio.
  QImage renderImage(qreal devicePixelRatio = 1.0) const;
  /// All plots with title, legend and caption, for a file or the clipboard.
  Figure figure(const FigureSize& size) const;
  /// All points of the visible runs on every clock, also smoothed, for writing as text.
  SeriesSnapshot snapshot() const;
  /// Position of the cursor and a line per visible run: "update 20", "Demo loss 2.311 learning rate 0.003"; empty
  /// without a cursor.
  QStringList readOut() const;
  /// Copies it to the clipboard. Returns false without a cursor.
  bool copyReadOut() const;
  /// One sentence per plot, for assistive technology and the narrator.
  QStringList summaries() const;
  QString emptyText() const;
  void setEmptyText(const QString& text);

 Q_SIGNALS:
  void shownPlotsChanged();
  /// Requests a plot's menu at a place on the screen.
  void menuRequested(accrue::ui::PlotView* view, const QPoint& at);
  /// The user changed these with a key or the mouse; a tool bar mirrors them.
  void clockChanged(accrue::ui::Clock clock);
  void logYChanged(bool on);
  void smoothingChanged(double weight);
  void followLiveChanged(bool on);
  void groupSeedsChanged(bool on);

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  void timerEvent(QTimerEvent* event) override;

 private:
  void connectSignals();
  void drawNext();
  void showEmptyState();
  void refreshKey();
  void buildViews();
  /// Arranges the shown plots in order; only the lowest has the axis.
  void arrange();
  std::vector<ExportPart> exportParts() const;
  int exportWidthNow() const;

  std::unique_ptr<PlotHub> hub_;
  QStackedLayout* stack_ = nullptr;
  RunKey* key_ = nullptr;
  QWidget* emptyPage_ = nullptr;
  QLabel* emptyLabel_ = nullptr;
  QSplitter* splitter_ = nullptr;
  QWidget* scrolled_ = nullptr;
  std::vector<PlotView*> all_;      ///< the loss first
  std::vector<PlotView*> shown_;    ///< from the top
  PartingMark* parting_ = nullptr;  ///< in the loss plot
  QBasicTimer turn_;                ///< runs while plots of this frame wait to be drawn
  std::size_t next_ = 0;            ///< index of the next shown plot to draw
};

}  // namespace accrue::ui
