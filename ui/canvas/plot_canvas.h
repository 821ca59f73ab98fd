// SPDX-License-Identifier: GPL-3.0-or-later
// PlotCanvas: a QCustomPlot with the studio's policies: margins independent of data, one-pixel pens, queued replots and
// the studio's palette. Mouse controls: the wheel zooms, a drag draws a zoom box, a drag with Shift or the middle
// button pans, a double click fits, or shows the window under it.
#pragma once

#include <optional>
#include <vector>

#include "kit/theme_colors.h"
#include "plot_hub.h"
#include "qcp.h"

namespace accrue::ui {

class AxisTitle;
class CursorLayer;

class PlotCanvas final : public QCustomPlot {
  Q_OBJECT

 public:
  // Margins grow with their text.
  static int leftMargin() { return scaled(72); }
  static int rightMargin() { return scaled(20); }
  static int topMargin() { return scaled(6); }
  static int bottomMargin() { return scaled(8); }
  /// Margin below the plot with the X axis: tick labels and title in one row.
  static int axisMargin() { return scaled(26); }

  PlotCanvas(PlotHub& hub, int plotNumber, QWidget* parent = nullptr);

  QCPAxis* x() const { return xAxis; }
  QCPAxis* y() const { return yAxis; }
  /// Sets whether this plot has the labels and title of X.
  void setShowsClock(bool on);
  bool showsClock() const { return showsClock_; }
  /// Sets the unit of X in the row of tick labels: between the last two, or at the right end. Returns the last pixel
  /// available for labels. Call after layOut().
  double setClockTitle(const QString& title);
  /// For paper, until it is called without arguments: more space at the right, for a label at the end of X, and a
  /// separate row for the title of X.
  void giveRoom(int right = 0, bool rowForTitle = false);
  /// Lays the axes out for a size in logical pixels: the widget's, or a picture's.
  void layOut(const QSize& size);
  /// In pixels at the normal text size; grows with it.
  void setLeastHeight(int height);
  /// Sets whether drag and wheel also change Y.
  void setZoomsY(bool on) { zoomsY_ = on; }
  /// Makes a double click show the window under it instead of all data.
  void setZoomsToWindow(bool on) { zoomsToWindow_ = on; }
  const ThemeColors& colors() const { return colors_; }
  /// Paints in these colours until the theme is applied again.
  void useColors(const ThemeColors& colors);
  /// Takes colours and fonts from the widget's palette.
  void applyTheme();
  /// Width of the drawing area for a canvas of some width.
  static int areaWidth(int canvasWidth) { return std::max(canvasWidth - leftMargin() - rightMargin(), 1); }
  /// Points at the cursor, in data coordinates, with their run's marker and colour.
  struct CursorDot {
    double x = 0.0;
    double y = 0.0;
    int seriesIndex = 0;
  };
  void showCursor(std::optional<double> x, std::vector<CursorDot> dots);
  /// Paints everything except the cursor, at (0, 0) of the painter's coordinates.
  void paintInto(QCPPainter* painter, int width, int height);

 Q_SIGNALS:
  void hovered(double x, double y);
  void left();
  void themeApplied();

 protected:
  /// Adds the focus mark.
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  enum class Drag { none, box, pan };
  /// Scales a length from the normal text size to the current one.
  static int scaled(int length);
  void updateMargins();
  void finishBox(const QRect& box);
  void cancelDrag();

  PlotHub& hub_;
  int plotNumber_;
  bool showsClock_ = false;
  int least_ = 56;
  int moreAtRight_ = 0;
  bool rowForTitle_ = false;
  bool zoomsY_ = true;
  bool zoomsToWindow_ = false;
  ThemeColors colors_;
  AxisTitle* title_ = nullptr;
  CursorLayer* cursor_ = nullptr;
  Drag drag_ = Drag::none;
  QPoint dragFrom_;
  Span dragX_;
};

}  // namespace accrue::ui
