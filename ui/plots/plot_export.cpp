// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/plot_export.h"

#include <QBuffer>
#include <QCoreApplication>
#include <QFileInfo>
#include <QPageSize>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include "plots/plot_view.h"

namespace accrue::ui {

namespace {

constexpr qreal printRatio = 3.0;
constexpr int pointsPerInch = 96;  // a logical pixel

QSize sizeOf(const std::vector<ExportPart>& parts, int width) {
  int height = 0;
  for (const ExportPart& part : parts) height += part.height;
  return {std::max(width, 1), std::max(height, 1)};
}

void paintParts(QCPPainter& painter, const std::vector<ExportPart>& parts, int width) {
  int top = 0;
  for (const ExportPart& part : parts) {
    part.view->renderInto(painter, QRect(0, top, width, part.height));
    top += part.height;
  }
}

QString text(const char* source) {
  return QCoreApplication::translate("PlotExport", source);
}

QByteArray svgOf(const std::vector<ExportPart>& parts, int width) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setSize(sizeOf(parts, width));
  generator.setViewBox(QRect(QPoint(), sizeOf(parts, width)));
  generator.setResolution(pointsPerInch);
  generator.setTitle(text(QT_TRANSLATE_NOOP("PlotExport", "Accrue plots")));
  {
    QCPPainter painter(&generator);
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    paintParts(painter, parts, width);
  }
  return bytes;
}

QByteArray pdfOf(const std::vector<ExportPart>& parts, int width) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setCreator(QStringLiteral("Accrue"));
    writer.setTitle(text(QT_TRANSLATE_NOOP("PlotExport", "Accrue plots")));
    writer.setResolution(pointsPerInch);
    writer.setPageSize(QPageSize(QSizeF(sizeOf(parts, width)) * 72.0 / pointsPerInch, QPageSize::Point));
    writer.setPageMargins(QMarginsF());
    QCPPainter painter(&writer);
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    paintParts(painter, parts, width);
  }
  return bytes;
}

QByteArray pngOf(const std::vector<ExportPart>& parts, int width) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  paintImage(parts, width, printRatio).save(&buffer, "PNG");
  return bytes;
}

}  // namespace

QImage paintImage(const std::vector<ExportPart>& parts, int width, qreal devicePixelRatio) {
  const QSize size = sizeOf(parts, width);
  QImage image((QSizeF(size) * devicePixelRatio).toSize(), QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(devicePixelRatio);
  image.fill(Qt::white);
  QCPPainter painter(&image);
  paintParts(painter, parts, width);
  painter.end();
  return image;
}

QString writePicture(const std::vector<ExportPart>& parts, int width, const QString& file) {
  const QString suffix = QFileInfo(file).suffix().toLower();
  QByteArray bytes;
  if (suffix == QLatin1String("png"))
    bytes = pngOf(parts, width);
  else if (suffix == QLatin1String("svg"))
    bytes = svgOf(parts, width);
  else if (suffix == QLatin1String("pdf"))
    bytes = pdfOf(parts, width);
  else
    return text(QT_TRANSLATE_NOOP("PlotExport", "%1 has no known picture format. End the name in .png, .svg or .pdf."))
        .arg(file);
  QSaveFile out(file);
  if (!out.open(QIODevice::WriteOnly) || out.write(bytes) != bytes.size() || !out.commit())
    return text(QT_TRANSLATE_NOOP("PlotExport", "%1 could not be written: %2. Choose another folder."))
        .arg(file, out.errorString());
  return {};
}

}  // namespace accrue::ui
