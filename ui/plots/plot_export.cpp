// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_export.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QFileInfo>
#include <QFontInfo>
#include <QFontMetrics>
#include <QPageSize>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "canvas/plot_view.h"
#include "canvas/series_swatch.h"
#include "kit/theme.h"

namespace accrue::ui {

namespace {

constexpr double printDots = 300.0;   // pixels per inch
constexpr double logicalDots = 96.0;  // per logical pixel
constexpr double millimetres = 25.4;  // per inch
constexpr int legendSwatch = 20;
constexpr int leastWidth = 60;  // a narrower plot beside its axis is unreadable
constexpr int wrappedLeft = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;

QString text(const char* source) {
  return QCoreApplication::translate("PlotExport", source);
}

/// Factor of the figure to its layout, which uses the studio's fonts.
double scaleOf(const FigureSize& size) {
  return size.fontPoints / QFontInfo(textFont(TextSize::small)).pointSizeF();
}

/// Size of the layout, in logical pixels.
QSize layoutOf(const FigureSize& size) {
  const double pixels = logicalDots / millimetres / scaleOf(size);
  return {std::max(static_cast<int>(std::lround(size.widthMm * pixels)), 1),
          std::max(static_cast<int>(std::lround(size.heightMm * pixels)), 1)};
}

/// Places the legend's items in rows, and paints them if there is a painter. Returns their height.
int layLegend(const std::vector<HeaderItem>& items, const QRect& area, QPainter* painter) {
  const QFontMetrics metrics(textFont(TextSize::small));
  const int row = metrics.height() + space::base;
  int left = area.left();
  int top = area.top();
  for (const HeaderItem& item : items) {
    const int beside = legendSwatch + space::base;
    const int width = beside + metrics.horizontalAdvance(item.text);
    if (left > area.left() && left + width > area.right()) {
      left = area.left();
      top += row;
    }
    if (painter != nullptr) {
      paintSwatch(*painter, QRectF(left, top + metrics.height() / 2.0 - 5.0, legendSwatch, 10.0), item.seriesIndex,
                  lightColors());
      painter->setPen(lightColors().text);
      painter->drawText(QRect(left + beside, top, area.width() - beside, 0), wrappedLeft | Qt::TextDontClip, item.text);
    }
    if (width > area.width()) {  // one name in several rows
      const QRect room(0, 0, area.width() - beside, 0);
      top += metrics.boundingRect(room, wrappedLeft, item.text).height() - metrics.height();
    }
    left += width + space::betweenGroups;
  }
  return items.empty() ? 0 : top + row - area.top();
}

/// Places of everything except the plots, in the coordinates of the layout; the plots get the rest.
struct Places {
  QRect title;
  QRect legend;
  QRect caption;
  QRect plots;
};

Places placesOf(const Figure& figure) {
  const QSize size = layoutOf(figure.size);
  const QRect area =
      QRect(QPoint(), size).adjusted(space::betweenGroups, space::inGroup, -space::betweenGroups, -space::inGroup);
  const auto heightOf = [&area](const QFont& font, const QString& words) {
    return words.isEmpty() ? 0 : QFontMetrics(font).boundingRect(area, wrappedLeft, words).height();
  };
  const int title = heightOf(textFont(TextSize::title, QFont::DemiBold), figure.title);
  const int caption = heightOf(textFont(TextSize::small), figure.caption);
  Places places;
  places.title = QRect(area.left(), area.top(), area.width(), title);
  const int legendTop = area.top() + (title > 0 ? title + space::base : 0);
  places.legend = QRect(area.left(), legendTop, area.width(), 0);
  places.legend.setHeight(layLegend(figure.legend, places.legend, nullptr));
  places.caption = QRect(area.left(), area.bottom() + 1 - caption, area.width(), caption);
  const int plotsTop = legendTop + places.legend.height();
  const int plotsEnd = caption > 0 ? places.caption.top() - space::inGroup : area.bottom() + 1;
  places.plots = QRect(0, plotsTop, size.width(), plotsEnd - plotsTop);
  return places;
}

/// Minimum heights of the parts in a figure of this width: with every lane, if that leaves room for all parts.
std::vector<int> leastHeights(const Figure& figure, const QRect& area) {
  std::vector<int> heights;
  for (const bool whole : {true, false}) {
    heights.clear();
    for (const ExportPart& part : figure.parts) heights.push_back(part.view->leastOnPaper(area.width(), whole));
    if (std::accumulate(heights.begin(), heights.end(), 0) <= area.height()) break;
  }
  return heights;
}

/// Divides a height in proportion to the parts' own heights; none gets less than its minimum.
std::vector<int> sharedOut(const std::vector<ExportPart>& parts, const std::vector<int>& least, int height) {
  std::vector<int> heights(parts.size(), 0);
  for (bool again = true; again;) {
    again = false;
    double room = height;
    double wanted = 0.0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      room -= heights[i];
      if (heights[i] == 0) wanted += std::max(parts[i].height, 1);
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (heights[i] == 0 && room * std::max(parts[i].height, 1) / wanted < least[i]) {
        heights[i] = least[i];
        again = true;
      }
    if (again) continue;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (heights[i] == 0) heights[i] = static_cast<int>(room * std::max(parts[i].height, 1) / wanted);
  }
  return heights;
}

/// Uses the colours on screen.
void paintParts(QCPPainter& painter, const std::vector<ExportPart>& parts, const QRect& area) {
  double wanted = 0.0;
  for (const ExportPart& part : parts) wanted += part.height;
  double top = area.top();
  for (const ExportPart& part : parts) {
    const double height = area.height() * part.height / std::max(wanted, 1.0);
    const int from = static_cast<int>(std::lround(top));
    const int to = static_cast<int>(std::lround(top + height));
    part.view->renderInto(painter, QRect(area.left(), from, area.width(), std::max(to - from, 1)),
                          part.view->canvas().colors());
    top += height;
  }
}

/// Uses the coordinates of the layout.
void paint(QCPPainter& painter, const Figure& figure) {
  const Places places = placesOf(figure);
  painter.fillRect(QRect(QPoint(), layoutOf(figure.size)), lightColors().surface);
  painter.setFont(textFont(TextSize::title, QFont::DemiBold));
  painter.setPen(lightColors().text);
  painter.drawText(places.title, wrappedLeft, figure.title);
  painter.setFont(textFont(TextSize::small));
  layLegend(figure.legend, places.legend, &painter);
  painter.setPen(lightColors().muted);
  painter.drawText(places.caption, wrappedLeft, figure.caption);
  const std::vector<int> least = leastHeights(figure, places.plots);
  const std::vector<int> heights = sharedOut(figure.parts, least, places.plots.height());
  QRect place = places.plots;
  for (std::size_t i = 0; i < heights.size(); ++i) {
    place.setHeight(std::max(heights[i], 1));
    figure.parts[i].view->renderOnPaper(painter, place);
    place.moveTop(place.bottom() + 1);
  }
}

QByteArray pngOf(const QImage& image) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.save(&buffer, "PNG");
  return bytes;
}

}  // namespace

std::optional<double> heightWithRoom(const Figure& figure) {
  const QRect area = placesOf(figure).plots;
  const std::vector<int> least = leastHeights(figure, area);
  const int missing = std::accumulate(least.begin(), least.end(), 0) - area.height();
  if (PlotCanvas::areaWidth(area.width()) < leastWidth) return std::nullopt;
  if (missing <= 0) return figure.size.heightMm;
  return std::ceil((layoutOf(figure.size).height() + missing + 1) * scaleOf(figure.size) * millimetres / logicalDots);
}

QString figureProblem(const Figure& figure) {
  const std::optional<double> enough = heightWithRoom(figure);
  if (enough == figure.size.heightMm) return {};
  const QString problem =
      text(QT_TRANSLATE_NOOP("PlotExport", "The plots have no room in %1 x %2 mm with a font of %3 pt."))
          .arg(figure.size.widthMm)
          .arg(figure.size.heightMm)
          .arg(figure.size.fontPoints);
  if (!enough)
    return text(QT_TRANSLATE_NOOP("PlotExport", "%1 Make the figure larger or the font smaller.")).arg(problem);
  return text(QT_TRANSLATE_NOOP("PlotExport",
                                "%1 At this width they take a height of %2 mm. Make the figure that high, the font "
                                "smaller, or show fewer plots."))
      .arg(problem)
      .arg(*enough);
}

QImage paintImage(const std::vector<ExportPart>& parts, int width, qreal devicePixelRatio) {
  int height = 0;
  for (const ExportPart& part : parts) height += part.height;
  const QSize size(std::max(width, 1), std::max(height, 1));
  QImage image((QSizeF(size) * devicePixelRatio).toSize(), QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(devicePixelRatio);
  image.fill(Qt::white);
  QCPPainter painter(&image);
  paintParts(painter, parts, QRect(QPoint(), size));
  painter.end();
  return image;
}

QImage paintFigure(const Figure& figure, double dotsPerInch) {
  const double ratio = dotsPerInch / logicalDots * scaleOf(figure.size);
  QImage image((QSizeF(layoutOf(figure.size)) * ratio).toSize(), QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(ratio);
  image.fill(Qt::white);
  QCPPainter painter(&image);
  paint(painter, figure);
  painter.end();
  // Not earlier: a painter scales fonts by these.
  const int dotsPerMetre = static_cast<int>(std::lround(dotsPerInch / millimetres * 1000.0));
  image.setDotsPerMeterX(dotsPerMetre);
  image.setDotsPerMeterY(dotsPerMetre);
  return image;
}

QByteArray svgOf(const Figure& figure) {
  const QSize layout = layoutOf(figure.size);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setSize((QSizeF(layout) * scaleOf(figure.size)).toSize());
  generator.setViewBox(QRect(QPoint(), layout));
  generator.setResolution(static_cast<int>(logicalDots));
  generator.setTitle(figure.title);
  generator.setDescription(figure.caption);
  {
    QCPPainter painter(&generator);
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    paint(painter, figure);
  }
  return bytes;
}

QByteArray pdfOf(const Figure& figure) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setCreator(QStringLiteral("Accrue"));
    writer.setTitle(figure.title);
    writer.setResolution(static_cast<int>(logicalDots));
    writer.setPageSize(
        QPageSize(QSizeF(figure.size.widthMm, figure.size.heightMm), QPageSize::Millimeter, {}, QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF());
    QCPPainter painter(&writer);
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    painter.scale(scaleOf(figure.size), scaleOf(figure.size));
    paint(painter, figure);
  }
  return bytes;
}

PaintedFigure paintFor(const Figure& figure, const QString& file) {
  const QString suffix = QFileInfo(file).suffix().toLower();
  PaintedFigure painted{.image = {}, .bytes = {}, .problem = figureProblem(figure)};
  if (!painted.problem.isEmpty()) return painted;
  if (suffix == QLatin1String("png"))
    painted.image = paintFigure(figure, printDots);
  else if (suffix == QLatin1String("svg"))
    painted.bytes = svgOf(figure);
  else if (suffix == QLatin1String("pdf"))
    painted.bytes = pdfOf(figure);
  else
    painted.problem =
        text(QT_TRANSLATE_NOOP("PlotExport", "%1 has no known picture format. End the name in .png, .svg or .pdf."))
            .arg(file);
  return painted;
}

QString writePainted(const PaintedFigure& painted, const QString& file) {
  if (!painted.problem.isEmpty()) return painted.problem;
  const QByteArray bytes = painted.image.isNull() ? painted.bytes : pngOf(painted.image);
  QSaveFile out(file);
  if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size() || !out.commit())
    return text(QT_TRANSLATE_NOOP("PlotExport", "%1 could not be written: %2. Choose another folder."))
        .arg(file, out.errorString());
  return {};
}

}  // namespace accrue::ui
