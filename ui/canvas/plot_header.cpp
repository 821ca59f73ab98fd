// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_header.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>

#include "kit/number_text.h"
#include "kit/theme.h"
#include "series_swatch.h"

namespace accrue::ui {

namespace {

constexpr int swatchWidth = 20;
constexpr int blockSide = 9;
constexpr int leastBadge = 64;

int itemWidth(const HeaderItem& item, const QFontMetrics& metrics) {
  const int swatch = item.swatch == HeaderItem::Swatch::none  ? 0
                     : item.swatch == HeaderItem::Swatch::run ? swatchWidth + space::base
                                                              : blockSide + space::base;
  return swatch + metrics.horizontalAdvance(item.text);
}

HeaderItem briefly(HeaderItem item) {
  if (!item.brief.isEmpty()) item.text = item.brief;
  return item;
}

/// As many whole parts as fit; the first one is shortened if necessary.
QString fittingParts(QString text, const QFontMetrics& metrics, int room) {
  while (metrics.horizontalAdvance(text) > room) {
    const qsizetype end = std::max(text.lastIndexOf(QStringLiteral("; ")), text.lastIndexOf(QStringLiteral(" · ")));
    if (end <= 0) return metrics.elidedText(text, Qt::ElideRight, room);
    text.truncate(end);
  }
  return text;
}

}  // namespace

PlotHeader::PlotHeader(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void PlotHeader::setTitle(const QString& title, const QString& unit) {
  if (title == title_ && unit == unit_) return;
  title_ = title;
  unit_ = unit;
  explain();
}

void PlotHeader::setItems(std::vector<HeaderItem> items) {
  const bool had = hasLegend();
  items_ = std::move(items);
  // Values at the cursor change with every mouse move and are not in the tooltip.
  if (had || hasLegend())
    explain();
  else
    update();
}

void PlotHeader::setBadge(const QString& badge, const QString& help) {
  if (badge == badge_ && help == badge_help_) return;
  badge_ = badge;
  badge_help_ = help;
  explain();
}

void PlotHeader::setDrawn(std::size_t points, double columns) {
  const QString count = countText(static_cast<double>(points));
  const bool reduced = points > 0 && columns > 0.0;
  const QString drawn = points == 0 ? QString()
                        : reduced   ? tr("%1 pts → %2 px, min–max").arg(count, countText(std::round(columns)))
                                    : tr("%1 pts").arg(count);
  drawn_on_paper_ = reduced ? tr("drawn from %1 points, extremes kept").arg(count) : QString();
  if (drawn == drawn_) return;
  drawn_ = drawn;
  explain();
}

QString PlotHeader::whole(const QString& drawn) const {
  return drawn.isEmpty() || badge_.isEmpty() ? drawn + badge_ : drawn + QStringLiteral(" · ") + badge_;
}

void PlotHeader::setBadgeBelow(bool below) {
  badge_below_ = below;
  updateGeometry();
  update();
}

void PlotHeader::explain() {
  QStringList all{unit_, badge(), badge_help_};  // text that does not fit the line
  if (hasLegend()) {
    QStringList names;
    for (const HeaderItem& item : items_) names.append(item.text);
    names.removeAll(QString());
    all.append(names.join(QStringLiteral(", ")));
  }
  all.removeAll(QString());
  if (const QString text = all.join(QLatin1Char('\n')); text != toolTip()) setToolTip(text);
  update();
}

bool PlotHeader::hasLegend() const {
  return !items_.empty() && items_.back().swatch != HeaderItem::Swatch::none &&
         items_.back().swatch != HeaderItem::Swatch::run;
}

int PlotHeader::lineHeight() const {
  return QFontMetrics(textFont(TextSize::body)).height() + 2 * space::base;
}

QSize PlotHeader::sizeHint() const {
  const int below = badge_below_ ? QFontMetrics(textFont(TextSize::small)).height() : 0;
  return {400, lineHeight() + below};
}

void PlotHeader::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintInto(painter, rect(), themeColors(palette()));
}

void PlotHeader::paintInto(QPainter& painter, const QRect& rect, const ThemeColors& colors) const {
  paintLine(painter, rect, colors, badge());
}

void PlotHeader::paintLine(QPainter& painter, const QRect& rect, const ThemeColors& colors,
                           const QString& badge) const {
  painter.save();
  painter.fillRect(rect, colors.surface);
  const QFont titleFont = textFont(TextSize::body, QFont::DemiBold);
  const QFont plain = textFont(TextSize::small);
  const QFont numbers = tabularFont(TextSize::small);
  const QFontMetrics titleMetrics(titleFont);
  const QFontMetrics plainMetrics(plain);
  const QFontMetrics numberMetrics(numbers);
  const int line = badge_below_ ? lineHeight() : rect.height();
  const int baseline = rect.top() + (line + titleMetrics.ascent() - titleMetrics.descent()) / 2;
  int left = rect.left() + space::betweenGroups;

  painter.setFont(titleFont);
  painter.setPen(colors.text);
  painter.drawText(left, baseline, title_);
  left += titleMetrics.horizontalAdvance(title_) + space::inGroup;
  painter.setFont(plain);
  painter.setPen(colors.muted);
  // If both do not fit, the values at the cursor take precedence over the unit.
  const bool beside = !badge.isEmpty() && !badge_below_;
  int wanted = !beside ? 0 : plainMetrics.horizontalAdvance(badge) + space::betweenGroups;
  for (const HeaderItem& item : items_) wanted += itemWidth(item, numberMetrics) + space::betweenGroups;
  const int room = std::max(rect.right() - space::betweenGroups - left - wanted, 0);
  if (items_.empty() || plainMetrics.horizontalAdvance(unit_) <= room) {
    const QString unit = plainMetrics.elidedText(unit_, Qt::ElideRight, room);
    painter.drawText(left, baseline, unit);
    left += plainMetrics.horizontalAdvance(unit);
  }
  left += space::betweenGroups;

  int right = rect.right() - space::betweenGroups;
  // A sentence at the cursor and a legend take precedence over the badge; values of runs do not.
  const bool sentence = items_.size() == 1 && items_.front().swatch == HeaderItem::Swatch::none;
  const bool legend = hasLegend();
  int taken = 0;
  for (const HeaderItem& item : items_) taken += itemWidth(item, numberMetrics) + space::betweenGroups;
  const int gap = left + taken <= right ? space::betweenGroups : space::inGroup;
  const bool first = sentence || legend;
  const int rest = std::max(right - left - (first ? taken : 0), 0);
  if (badge_below_)
    painter.drawText(rect.left() + space::betweenGroups, rect.top() + line + plainMetrics.ascent() - space::base,
                     fittingParts(badge, plainMetrics, rect.width() - 2 * space::betweenGroups));
  if (beside && (!first || rest > leastBadge)) {
    const int most = items_.empty() || first ? rest : std::min(rest, rect.width() * 2 / 5);
    const QString fitting = fittingParts(badge, plainMetrics, most);
    const int width = plainMetrics.horizontalAdvance(fitting);
    painter.drawText(right - width, baseline, fitting);
    right -= width + space::betweenGroups;
  }

  painter.setFont(numbers);
  std::vector<HeaderItem> items = items_;
  if (legend && left + taken > right) std::ranges::transform(items, items.begin(), briefly);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const QString more = QStringLiteral("+%1").arg(items.size() - i);
    const bool last = i + 1 == items.size();
    const int needed = itemWidth(items[i], numberMetrics) + (last ? 0 : gap + numberMetrics.horizontalAdvance(more));
    if (sentence && left + needed > right) {
      HeaderItem shortened = items[i];
      shortened.text = numberMetrics.elidedText(shortened.text, Qt::ElideRight, std::max(right - left, 0));
      paintItem(painter, shortened, left, QRect(left, baseline - numberMetrics.ascent(), 0, numberMetrics.height()),
                colors);
      break;
    }
    if (left + needed > right) {
      painter.setPen(colors.muted);
      if (left + numberMetrics.horizontalAdvance(more) <= right) painter.drawText(left, baseline, more);
      break;
    }
    left = paintItem(painter, items[i], left, QRect(left, baseline - numberMetrics.ascent(), 0, numberMetrics.height()),
                     colors);
    left += gap;
  }
  painter.restore();
}

bool PlotHeader::fitsLine(int width) const {
  const QFontMetrics plain(textFont(TextSize::small));
  const QFontMetrics numbers(tabularFont(TextSize::small));
  int wanted = QFontMetrics(textFont(TextSize::body, QFont::DemiBold)).horizontalAdvance(title_) + space::inGroup +
               plain.horizontalAdvance(unit_) + space::betweenGroups;
  for (const HeaderItem& item : items_) wanted += itemWidth(item, numbers) + space::betweenGroups;
  const int badge = plain.horizontalAdvance(whole(drawn_on_paper_));
  if (!badge_below_ && badge > 0) wanted += badge + space::betweenGroups;
  const int room = width - 2 * space::betweenGroups;
  return wanted <= room && (!badge_below_ || badge <= room);
}

int PlotHeader::flow(QPainter* painter, const QRect& area) const {
  const QFont titleFont = textFont(TextSize::body, QFont::DemiBold);
  const QFont plain = textFont(TextSize::small);
  const QFont numbers = tabularFont(TextSize::small);
  const QFontMetrics metrics(plain);
  const QFontMetrics titleMetrics(titleFont);
  const QFontMetrics numberMetrics(numbers);
  const ThemeColors& colors = lightColors();
  int top = area.top();
  const auto paragraph = [&](const QString& text) {
    if (text.isEmpty()) return;
    constexpr int wrapped = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;
    const QRect place(area.left(), top, area.width(), metrics.boundingRect(area, wrapped, text).height());
    if (painter != nullptr) {
      painter->setFont(plain);
      painter->setPen(colors.muted);
      painter->drawText(place, wrapped | Qt::TextDontClip, text);
    }
    top = place.bottom() + 1;
  };
  const int beside = area.left() + titleMetrics.horizontalAdvance(title_) + space::inGroup;
  const bool unitBeside = beside + metrics.horizontalAdvance(unit_) <= area.right();
  const int baseline = top + (lineHeight() + titleMetrics.ascent() - titleMetrics.descent()) / 2;
  if (painter != nullptr) {
    painter->setFont(titleFont);
    painter->setPen(colors.text);
    painter->drawText(area.left(), baseline, title_);
    painter->setFont(plain);
    painter->setPen(colors.muted);
    if (unitBeside) painter->drawText(beside, baseline, unit_);
  }
  top += lineHeight();
  if (!unitBeside) paragraph(unit_);
  const int row = numberMetrics.height() + space::base;
  int left = area.left();
  for (const HeaderItem& item : items_) {
    const int width = itemWidth(item, numberMetrics);
    if (left > area.left() && left + width > area.right()) {
      left = area.left();
      top += row;
    }
    if (painter != nullptr) {
      painter->setFont(numbers);
      paintItem(*painter, item, left, QRect(left, top, 0, numberMetrics.height()), colors);
    }
    left += width + space::inGroup;
  }
  if (!items_.empty()) top += row;
  paragraph(whole(drawn_on_paper_));
  return top - area.top();
}

int PlotHeader::heightOnPaper(int width) const {
  if (fitsLine(width)) return sizeHint().height();
  return flow(nullptr, QRect(space::betweenGroups, 0, width - 2 * space::betweenGroups, 0));
}

void PlotHeader::paintOnPaper(QPainter& painter, const QRect& rect) const {
  if (fitsLine(rect.width())) return paintLine(painter, rect, lightColors(), whole(drawn_on_paper_));
  painter.save();
  painter.fillRect(rect, lightColors().surface);
  flow(&painter, rect.adjusted(space::betweenGroups, 0, -space::betweenGroups, 0));
  painter.restore();
}

int PlotHeader::paintItem(QPainter& painter, const HeaderItem& item, int left, const QRect& line,
                          const ThemeColors& colors) const {
  const int middle = line.center().y() + 1;
  const QRect block(left, middle - blockSide / 2, blockSide, blockSide);
  switch (item.swatch) {
    case HeaderItem::Swatch::none:
      break;
    case HeaderItem::Swatch::run:
      paintSwatch(painter, QRectF(left, middle - 5, swatchWidth, 10), item.seriesIndex, colors);
      left += swatchWidth + space::base;
      break;
    case HeaderItem::Swatch::block:
      painter.fillRect(block, item.color);
      if (item.outline.isValid()) {
        painter.setPen(item.outline);
        painter.drawRect(block.adjusted(0, 0, -1, -1));
      }
      left += blockSide + space::base;
      break;
    case HeaderItem::Swatch::hatch:
      painter.fillRect(block, QBrush(item.color, Qt::BDiagPattern));
      left += blockSide + space::base;
      break;
    case HeaderItem::Swatch::bar:
      painter.fillRect(block.adjusted(2, 0, -2, 0), item.color);
      left += blockSide + space::base;
      break;
    case HeaderItem::Swatch::outline:
      paintMarker(painter, QRectF(block).center(), blockSide, 0, item.color, colors.surface);
      left += blockSide + space::base;
      break;
    case HeaderItem::Swatch::foot:
      painter.fillRect(block.adjusted(0, blockSide - 3, 0, 0), item.color);
      left += blockSide + space::base;
      break;
  }
  painter.setPen(colors.text);
  painter.drawText(left, line.top() + QFontMetrics(painter.font()).ascent(), item.text);
  return left + QFontMetrics(painter.font()).horizontalAdvance(item.text);
}

}  // namespace accrue::ui
