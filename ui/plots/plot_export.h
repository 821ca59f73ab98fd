// SPDX-License-Identifier: GPL-3.0-or-later
// A stack of plots as a figure for a paper: title, legend, the plots and a caption, repainted in light colours for a
// size in millimetres and a font size in points. Never a screenshot.
#pragma once

#include <QByteArray>
#include <QImage>
#include <QString>
#include <optional>
#include <vector>

#include "canvas/plot_header.h"
#include "figure_size.h"

namespace accrue::ui {

class PlotView;

/// A plot and its share of the height.
struct ExportPart {
  PlotView* view = nullptr;
  int height = 0;
};

struct Figure {
  std::vector<ExportPart> parts;
  QString title;
  std::vector<HeaderItem> legend;  ///< one entry per run
  QString caption;
  FigureSize size;
};

/// Paints the plots alone, as on screen.
QImage paintImage(const std::vector<ExportPart>& parts, int width, qreal devicePixelRatio);
/// Paints the figure at a resolution.
QImage paintFigure(const Figure& figure, double dotsPerInch);
QByteArray svgOf(const Figure& figure);
QByteArray pdfOf(const Figure& figure);
/// In millimetres: the figure's own height, or the minimum for its plots at its width; none if it is too narrow.
std::optional<double> heightWithRoom(const Figure& figure);
/// Reason why the figure cannot be drawn at its size, with advice; empty if it can.
QString figureProblem(const Figure& figure);
/// A figure in the form of a file.
struct PaintedFigure {
  QImage image;      ///< for a PNG, which is encoded when it is written
  QByteArray bytes;  ///< for any other format
  QString problem;   ///< reason for a failure, with advice; else empty
};
/// Thread: GUI. The file's suffix selects the format: png (300 pixels per inch), svg, pdf.
PaintedFigure paintFor(const Figure& figure, const QString& file);
/// Any thread. Returns empty on success, else the problem with advice. On failure the file is unchanged.
QString writePainted(const PaintedFigure& painted, const QString& file);

}  // namespace accrue::ui
