// SPDX-License-Identifier: GPL-3.0-or-later
// A stack of plots as a picture or a document, repainted for its size: never a screenshot.
#pragma once

#include <QByteArray>
#include <QImage>
#include <QSize>
#include <QString>
#include <vector>

namespace accrue::ui {

class PlotView;

/// One plot and its part of the height.
struct ExportPart {
  PlotView* view = nullptr;
  int height = 0;
};

QImage paintImage(const std::vector<ExportPart>& parts, int width, qreal devicePixelRatio);
/// The file's suffix decides the format: png (3 pixels a point), svg, pdf. Returns empty on success, else what went
/// wrong and what to do. On failure the file is as it was before.
QString writePicture(const std::vector<ExportPart>& parts, int width, const QString& file);

}  // namespace accrue::ui
