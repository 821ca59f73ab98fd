// SPDX-License-Identifier: GPL-3.0-or-later
// PlotCanvas: a QCustomPlot with our policies: margins that no data move, one-pixel pens, queued replots, the studio's
// palette, and these mouse controls: wheel zooms, drag draws a zoom box, drag with Shift or the middle button pans,
// double click fits, or shows the window under it.
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
  // Margins grow with the text that stands in them.
  static int leftMargin() { return scaled(72); }
  static int rightMargin() { return scaled(20); }
  static int topMargin() { return scaled(6); }
  static int bottomMargin() { return scaled(8); }
  /// Below the plot that carries the X axis: tick labels and its title, one row.
  static int axisMargin() { return scaled(26); }

  PlotCanvas(PlotHub& hub, int plotNumber, QWidget* parent = nullptr);

  QCPAxis* x() const { return xAxis; }
  QCPAxis* y() const { return yAxis; }
  /// Whether this plot carries the labels and title of X.
  void setShowsClock(bool on);
  bool showsClock() const { return showsClock_; }
  /// What X counts, in the row of tick labels: between the last two, or at the right end. Returns up to which pixel it
  /// leaves room for them. After layOut().
  double setClockTitle(const QString& title);
  /// For paper, until it is called with nothing: more room at the right, for a label at the end of X, and a row of its
  /// own for the title of X.
  void giveRoom(int right = 0, bool rowForTitle = false);
  /// Lays the axes out for a size in logical pixels: the widget's, or a picture's.
  void layOut(const QSize& size);
  /// In pixels at the usual size of text; it grows with it.
  void setLeastHeight(int height);
  /// Whether drag and wheel change Y, too.
  void setZoomsY(bool on) { zoomsY_ = on; }
  /// A double click shows the window under it instead of all data.
  void setZoomsToWindow(bool on) { zoomsToWindow_ = on; }
  const ThemeColors& colors() const { return colors_; }
  /// Paints in these colours until the theme is applied again.
  void useColors(const ThemeColors& colors);
  /// Takes colours and fonts from the widget's palette.
  void applyTheme();
  /// Width of the drawing area for a canvas of some width.
  static int areaWidth(int canvasWidth) { return std::max(canvasWidth - leftMargin() - rightMargin(), 1); }
  /// The points at the cursor, in data coordinates, with their run's marker and colour.
  struct CursorDot {
    double x = 0.0;
    double y = 0.0;
    int seriesIndex = 0;
  };
  void showCursor(std::optional<double> x, std::vector<CursorDot> dots);
  /// Paints everything but the cursor into a painter, at (0, 0) of its coordinates.
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
  /// A length at the usual size of text, at the present one.
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
