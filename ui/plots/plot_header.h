// SPDX-License-Identifier: GPL-3.0-or-later
// PlotHeader: the line above a plot. Left the title and unit, in the middle the values at the cursor (or a legend),
// right a badge that says what was reduced or left out. Painted, not laid out: nothing moves when numbers change.
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
  QColor outline = {};  ///< of a block that is drawn hollow
  QString brief = {};   ///< in place of the text where the line has no room for all texts; empty: there is none
  bool operator==(const HeaderItem&) const = default;
};

class PlotHeader final : public QWidget {
  Q_OBJECT

 public:
  explicit PlotHeader(QWidget* parent = nullptr);
  void setTitle(const QString& title, const QString& unit);
  void setItems(std::vector<HeaderItem> items);
  /// Where it does not fit, its last parts are left out, which semicolons or dots divide; the tooltip has it whole.
  /// help: for the tooltip, below what the header says.
  void setBadge(const QString& badge, const QString& help = {});
  /// Before the badge: how many points the curves have, and into how many columns of pixels they were reduced, 0 for
  /// none. Paper has no pixels: it says that extremes were kept, and nothing where each point is drawn.
  void setDrawn(std::size_t points, double columns);
  /// Gives the badge a line of its own, whether there is one or not: nothing moves.
  void setBadgeBelow(bool below);
  QString title() const { return title_; }
  QString badge() const { return whole(drawn_); }
  const std::vector<HeaderItem>& items() const { return items_; }
  void paintInto(QPainter& painter, const QRect& rect, const ThemeColors& colors) const;
  /// On paper all of it is painted, in as many lines as that takes.
  int heightOnPaper(int width) const;
  void paintOnPaper(QPainter& painter, const QRect& rect) const;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {120, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void explain();
  /// The badge with what is said of the points before it.
  QString whole(const QString& drawn) const;
  void paintLine(QPainter& painter, const QRect& rect, const ThemeColors& colors, const QString& badge) const;
  bool hasLegend() const;
  int lineHeight() const;
  /// Whether one line, and one for a badge that stands below, hold all of it.
  bool fitsLine(int width) const;
  /// Places title, unit, items and badge one after the other, and paints them if there is a painter. Returns their
  /// height.
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
