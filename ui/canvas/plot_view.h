// SPDX-License-Identifier: GPL-3.0-or-later
// PlotView: one plot of the stack: header, canvas, and the decision when to draw. Subclasses decide what is drawn.
#pragma once

#include <QString>
#include <QWidget>
#include <memory>
#include <vector>

#include "plot_canvas.h"
#include "plot_header.h"
#include "plot_hub.h"
#include "plot_table.h"

namespace accrue::ui {

class ClockTicker;

/// Thread: GUI.
class PlotView : public QWidget {
  Q_OBJECT

 public:
  PlotView(PlotHub& hub, int number, const QString& objectName, QWidget* parent = nullptr);

  PlotCanvas& canvas() { return *canvas_; }
  const PlotCanvas& canvas() const { return *canvas_; }
  PlotHeader& header() { return *header_; }
  const PlotHeader& header() const { return *header_; }
  void setShowsClock(bool on);

  /// Whether something other than data changed since the last drawing, and the plot is visible.
  bool viewChanged() const;
  /// Whether data or view changed.
  bool outdated() const;
  /// Draws if outdated; returns whether it drew.
  bool refreshIfNeeded();
  void markStale() { stale_ = true; }
  /// Returns one sentence about the plot's contents.
  virtual QString summary() const = 0;
  /// Returns a run's value at a position: "loss 2.311"; empty if it has none.
  virtual QString valueAt(const RunSeries& run, double x) const = 0;

  /// Returns the plot's contents as a table.
  virtual PlotTable table() const = 0;
  /// Changes with the table's contents.
  std::uint64_t contentRevision() const { return hub_.revision() + hub_.dataRevision(); }

  /// Paints header and plot into a rectangle in these colours, without the cursor, reduced for its width. The next
  /// refresh() draws for the window again.
  void renderInto(QCPPainter& painter, const QRect& rect, const ThemeColors& colors);
  /// Does the same for paper: nothing is dropped for lack of space; header and axis use more lines instead.
  void renderOnPaper(QCPPainter& painter, const QRect& rect);
  /// Minimum height at a width; `whole`: including everything that can be scrolled to on screen.
  int leastOnPaper(int width, bool whole);
  int headerHeight() const;
  /// Screen position at which a key opens the plot's menu.
  QPoint menuPlace() const { return header_->mapToGlobal(header_->rect().bottomLeft()); }

 Q_SIGNALS:
  /// Requests the plot's menu at a place on the screen.
  void menuRequested(const QPoint& at);

 protected:
  struct Readout {
    std::vector<HeaderItem> items;
    std::vector<PlotCanvas::CursorDot> dots;
  };
  /// Fills the layers for a drawing area of this many device pixels and sets the range of Y.
  virtual void rebuild(double pixels) = 0;
  virtual Readout readout(double x) const = 0;
  /// Returns the header's items without a cursor.
  virtual std::vector<HeaderItem> legend() const { return {}; }

  const PlotHub& hub() const { return hub_; }
  PlotHub& hub() { return hub_; }
  int number() const { return number_; }
  void setYRange(const Span& wanted);
  /// Minimum height of the drawing area on paper.
  virtual int leastArea(bool) const { return leastDrawing; }
  static constexpr int leastDrawing = 30;
  /// Whether the current drawing is for paper, where nothing can be scrolled.
  bool onPaper() const { return onPaper_; }
  /// Range of Y that an automatic axis keeps from frame to frame.
  Span fittedY(double low, double high, bool logarithmic);

  void contextMenuEvent(QContextMenuEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  bool canBeSeen() const { return isVisible() && canvas_->width() >= 2 && canvas_->height() >= 2; }
  /// Draws for a canvas of this size, in logical pixels, at a pixel ratio.
  void prepare(const QSize& size, double ratio);
  void showCursor();
  void prepareAxis(const QSize& size);
  /// Draws for paper of this size, including the header, and returns the header's height.
  int prepareOnPaper(const QSize& size, double ratio);
  void paintCanvas(QCPPainter& painter, const QRect& canvas);
  /// Returns to the window's size and colours.
  void leavePicture();

  PlotHub& hub_;
  int number_;
  PlotHeader* header_;
  PlotCanvas* canvas_;
  QSharedPointer<ClockTicker> clockTicker_;
  int ticksOnScreen_;
  bool stale_ = true;
  bool onPaper_ = false;
  std::uint64_t seenView_ = 0;
  std::uint64_t seenData_ = 0;
  QSize seenSize_;
  std::optional<Span> keptY_;
  Clock keptClock_ = Clock::update;
  bool keptLog_ = false;
};

/// Position of the cursor in words: "update 120", "1.2 M samples", "12.5 s".
QString positionText(Clock clock, double x);

}  // namespace accrue::ui
