// SPDX-License-Identifier: GPL-3.0-or-later
// A stack of plots as a figure for a paper: title, legend, the plots and a caption, repainted in light colours for a
// size in millimetres and a font size in points. Never a screenshot.
#pragma once

#include <QByteArray>
#include <QImage>
#include <QString>
#include <optional>
#include <vector>

#include "figure_size.h"
#include "plot_header.h"

namespace accrue::ui {

class PlotView;

/// One plot and its part of the height.
struct ExportPart {
  PlotView* view = nullptr;
  int height = 0;
};

struct Figure {
  std::vector<ExportPart> parts;
  QString title;
  std::vector<HeaderItem> legend;  ///< one run each
  QString caption;
  FigureSize size;
};

/// The plots alone, as on screen.
QImage paintImage(const std::vector<ExportPart>& parts, int width, qreal devicePixelRatio);
/// The figure with so many pixels an inch.
QImage paintFigure(const Figure& figure, double dotsPerInch);
QByteArray svgOf(const Figure& figure);
QByteArray pdfOf(const Figure& figure);
/// In millimetres: the figure's own height, or the least one that its plots take at its width; none where it is too
/// narrow.
std::optional<double> heightWithRoom(const Figure& figure);
/// Why the figure cannot be drawn at its size, and what to do; empty if it can.
QString figureProblem(const Figure& figure);
/// A figure as a file will hold it.
struct PaintedFigure {
  QImage image;      ///< of a PNG, which is encoded when it is written
  QByteArray bytes;  ///< of any other format
  QString problem;   ///< why there is none, and what to do; else empty
};
/// Thread: GUI. The file's suffix decides the format: png (300 pixels an inch), svg, pdf.
PaintedFigure paintFor(const Figure& figure, const QString& file);
/// Any thread. Returns empty on success, else what went wrong and what to do. On failure the file is as it was before.
QString writePainted(const PaintedFigure& painted, const QString& file);

}  // namespace accrue::ui
