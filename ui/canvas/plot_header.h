// SPDX-License-Identifier: GPL-3.0-or-later
// PlotHeader: the line above a plot. On the left the title and unit, in the middle the values at the cursor (or a
// legend), on the right a badge about reduced or dropped data. It is painted, not laid out, so nothing moves when
// numbers change.
#pragma once

#include <QColor>
#include <QPainter>
#include <QString>
#include <QWidget>
#include <vector>

#include "kit/theme_colors.h"

namespace accrue::ui {

struct HeaderItem {
  enum class Swatch { none, run, block, hatch, bar, foot, outline };
  Swatch swatch = Swatch::none;
  int seriesIndex = 0;  ///< of a run
  QColor color;         ///< of a block, hatch, bar, outline of a mark, or mark at a block's foot
  QString text;
  QColor outline = {};  ///< of a hollow block
  QString brief = {};   ///< replaces the text if the line has no room for all texts; empty: none
  bool operator==(const HeaderItem&) const = default;
};

class PlotHeader final : public QWidget {
  Q_OBJECT

 public:
  explicit PlotHeader(QWidget* parent = nullptr);
  void setTitle(const QString& title, const QString& unit);
  void setItems(std::vector<HeaderItem> items);
  /// If the badge does not fit, its last parts, separated by semicolons or dots, are dropped; the tooltip has all of
  /// it. help: tooltip text below the header's.
  void setBadge(const QString& badge, const QString& help = {});
  /// Shown before the badge: number of points of the curves, and of pixel columns after reduction, 0 for none. Paper
  /// has no pixels: it says that extremes were kept, or nothing if each point is drawn.
  void setDrawn(std::size_t points, double columns);
  /// Reserves a separate line for the badge, even if there is none, so that nothing moves.
  void setBadgeBelow(bool below);
  QString title() const { return title_; }
  QString badge() const { return whole(drawn_); }
  const std::vector<HeaderItem>& items() const { return items_; }
  void paintInto(QPainter& painter, const QRect& rect, const ThemeColors& colors) const;
  /// Height on paper, where everything is painted, on as many lines as necessary.
  int heightOnPaper(int width) const;
  void paintOnPaper(QPainter& painter, const QRect& rect) const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {120, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void explain();
  /// The badge after the text about points.
  QString whole(const QString& drawn) const;
  void paintLine(QPainter& painter, const QRect& rect, const ThemeColors& colors, const QString& badge) const;
  bool hasLegend() const;
  int lineHeight() const;
  /// Whether one line, plus one for a badge below, holds everything.
  bool fitsLine(int width) const;
  /// Places title, unit, items and badge in a row, and paints them if there is a painter. Returns their height.
  int flow(QPainter* painter, const QRect& area) const;
  int paintItem(QPainter& painter, const HeaderItem& item, int left, const QRect& rect,
                const ThemeColors& colors) const;

  QString title_;
  QString unit_;
  QString drawn_;
  QString drawn_on_paper_;
  QString badge_;
  QString badge_help_;
  bool badge_below_ = false;
  std::vector<HeaderItem> items_;
};

}  // namespace accrue::ui
