// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/plot_export.h"

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
#include <utility>

#include "plots/plot_view.h"
#include "plots/series_swatch.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr double printDots = 300.0;   // pixels an inch
constexpr double logicalDots = 96.0;  // a logical pixel
constexpr double millimetres = 25.4;  // an inch
constexpr int legendSwatch = 20;
constexpr int leastPart = 60;  // a plot that is lower cannot be read

QString text(const char* source) {
  return QCoreApplication::translate("PlotExport", source);
}

/// How much larger the figure is than its layout, which is made with the studio's fonts.
double scaleOf(const FigureSize& size) {
  return size.fontPoints / QFontInfo(textFont(TextSize::small)).pointSizeF();
}

/// Of the layout, in logical pixels.
QSize layoutOf(const FigureSize& size) {
  const double pixels = logicalDots / millimetres / scaleOf(size);
  return {std::max(static_cast<int>(std::lround(size.widthMm * pixels)), 1),
          std::max(static_cast<int>(std::lround(size.heightMm * pixels)), 1)};
}

/// Places the legend's items in rows; paints them if there is a painter. Returns the height they take.
int layLegend(const std::vector<HeaderItem>& items, const QRect& area, QPainter* painter) {
  const QFontMetrics metrics(textFont(TextSize::small));
  const int row = metrics.height() + space::base;
  int left = area.left();
  int top = area.top();
  for (const HeaderItem& item : items) {
    const QString name = metrics.elidedText(item.text, Qt::ElideMiddle, area.width() - legendSwatch - space::base);
    const int width = legendSwatch + space::base + metrics.horizontalAdvance(name);
    if (left > area.left() && left + width > area.right()) {
      left = area.left();
      top += row;
    }
    if (painter != nullptr) {
      paintSwatch(*painter, QRectF(left, top + metrics.height() / 2.0 - 5.0, legendSwatch, 10.0), item.seriesIndex,
                  lightColors());
      painter->setPen(lightColors().text);
      painter->drawText(left + legendSwatch + space::base, top + metrics.ascent(), name);
    }
    left += width + space::betweenGroups;
  }
  return items.empty() ? 0 : top + row - area.top();
}

/// In these colours, else in those on screen.
void paintParts(QCPPainter& painter, const std::vector<ExportPart>& parts, const QRect& area,
                const ThemeColors* colors = nullptr) {
  double wanted = 0.0;
  for (const ExportPart& part : parts) wanted += part.height;
  double top = area.top();
  for (const ExportPart& part : parts) {
    const double height = area.height() * part.height / std::max(wanted, 1.0);
    const int from = static_cast<int>(std::lround(top));
    const int to = static_cast<int>(std::lround(top + height));
    part.view->renderInto(painter, QRect(area.left(), from, area.width(), std::max(to - from, 1)),
                          colors != nullptr ? *colors : part.view->canvas().colors());
    top += height;
  }
}

/// In the coordinates of the layout.
void paint(QCPPainter& painter, const Figure& figure) {
  const QSize size = layoutOf(figure.size);
  QRect area(QPoint(), size);
  painter.fillRect(area, lightColors().surface);
  area.adjust(space::betweenGroups, space::inGroup, -space::betweenGroups, -space::inGroup);
  const QFont title = textFont(TextSize::title, QFont::DemiBold);
  const QFont small = textFont(TextSize::small);
  if (!figure.title.isEmpty()) {
    const QFontMetrics metrics(title);
    painter.setFont(title);
    painter.setPen(lightColors().text);
    painter.drawText(area.left(), area.top() + metrics.ascent(),
                     metrics.elidedText(figure.title, Qt::ElideRight, area.width()));
    area.setTop(area.top() + metrics.height() + space::base);
  }
  painter.setFont(small);
  area.setTop(area.top() + layLegend(figure.legend, area, &painter));
  constexpr int wrapped = Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap;
  const QRect caption = QFontMetrics(small).boundingRect(area, wrapped, figure.caption);
  if (!figure.caption.isEmpty()) {
    const QRect place(area.left(), area.bottom() + 1 - caption.height(), area.width(), caption.height());
    painter.setPen(lightColors().muted);
    painter.drawText(place, wrapped, figure.caption);
    area.setBottom(place.top() - space::inGroup);
  }
  paintParts(painter, figure.parts, QRect(0, area.top(), size.width(), area.height()), &lightColors());
}

QByteArray pngOf(const QImage& image) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.save(&buffer, "PNG");
  return bytes;
}

}  // namespace

QString figureProblem(const Figure& figure) {
  const QSize size = layoutOf(figure.size);
  const QFontMetrics small(textFont(TextSize::small));
  const QRect area(space::betweenGroups, 0, size.width() - 2 * space::betweenGroups, size.height());
  const int legend = layLegend(figure.legend, area, nullptr);
  const int caption = small.boundingRect(area, Qt::TextWordWrap, figure.caption).height();
  const int title = QFontMetrics(textFont(TextSize::title)).height() + space::base;
  const int room = size.height() - legend - caption - title - 4 * space::inGroup;
  if (room >= leastPart * static_cast<int>(figure.parts.size())) return {};
  return text(QT_TRANSLATE_NOOP("PlotExport",
                                "The plots have no room in %1 x %2 mm with a font of %3 pt. Make the figure larger or "
                                "the font smaller."))
      .arg(figure.size.widthMm)
      .arg(figure.size.heightMm)
      .arg(figure.size.fontPoints);
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
  // Not before: it is by these that a painter scales fonts.
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
