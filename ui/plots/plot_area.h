// SPDX-License-Identifier: GPL-3.0-or-later
// PlotArea: plots stacked on one X axis; at first loss, learning rate and sync strip. The window sets the runs to show
// and calls tick() once per frame; the area draws what changed.
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

/// Object name of the plot of how far updates move the weights.
inline constexpr const char* updateNormPlot = "updateNormPlot";

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

  /// Every plot there is, by its object name; the shown ones by theirs, from the top.
  const std::vector<PlotView*>& allViews() const { return all_; }
  QStringList shownPlots() const;
  /// Names that no plot has are passed over; without a known one the first plots are shown.
  void setShownPlots(const QStringList& names);
  /// Adds a plot under the loss, if it is not shown yet; a name that no plot has is passed over.
  void showBesideLoss(const QString& name);
  bool isPlotShown(const PlotView* view) const;
  /// A new plot comes last. The last one that is shown stays.
  void setPlotShown(PlotView* view, bool on);
  /// Up by a negative number of places.
  void movePlot(PlotView* view, int by);
  /// A plot as a table, in a window of its own.
  void showTable(PlotView* view);
  /// Gives the shown plots the heights that they have at first.
  void resetHeights();
  /// The plot with the focus, else the first.
  PlotView* currentView() const;

  void setClock(Clock clock);
  Clock clock() const;
  void setLogY(bool on);
  bool logY() const;
  /// The weight of the past, 0 (off) to 0.999.
  void setSmoothing(double weight);
  double smoothing() const;
  /// Whether the loss of several seeds is drawn as one curve and a band.
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

  /// Marks where two curves part, with what differs between their runs; empty takes the mark away.
  void setParting(const std::optional<ClockPoint>& at, const QStringList& chips);

  /// Says above the plots which colour is which run, while no table of runs does.
  void setKeyShown(bool on);

  /// Called once per frame by the window's 33 ms timer. Draws only visible plots whose data or view changed: all of
  /// them at once after a change of the view, so that their axes agree on the screen; after new data alone one in each
  /// turn of the event loop, so that no input waits for more than one.
  void tick();
  /// Draws at once whatever changed.
  void drawAll();

  /// All plots as one picture, at a pixel ratio.
  QImage renderImage(qreal devicePixelRatio = 1.0) const;
  /// All plots with title, legend and caption, for a file or the clipboard.
  Figure figure(const FigureSize& size) const;
  /// Every point of the visible runs on every clock, to be written as text; smoothed too.
  SeriesSnapshot snapshot() const;
  /// The cursor's position and a line per visible run: "update 20", "Demo  loss 2.311  learning rate 0.003"; empty
  /// without a cursor.
  QStringList readOut() const;
  /// To the clipboard. False without a cursor.
  bool copyReadOut() const;
  /// One sentence a plot, for assistive technology and the narrator.
  QStringList summaries() const;
  QString emptyText() const;
  void setEmptyText(const QString& text);

 Q_SIGNALS:
  void shownPlotsChanged();
  /// A plot's menu is wanted at a place on the screen.
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
  bool handleKey(int key, Qt::KeyboardModifiers modifiers);
  void drawNext();
  void showEmptyState();
  void refreshKey();
  void buildViews();
  /// Puts the shown plots in their order; only the lowest carries the axis.
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
  QBasicTimer turn_;                ///< runs while plots of this frame wait for their turn
  std::size_t next_ = 0;            ///< of the shown plots, the one whose turn it is
};

}  // namespace accrue::ui
