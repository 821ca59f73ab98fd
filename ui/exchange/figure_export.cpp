// SPDX-License-Identifier: GPL-3.0-or-later
#include "figure_export.h"

#include <QClipboard>
#include <QDir>
#include <QFileInfo>
#include <QGuiApplication>
#include <QMimeData>
#include <QSaveFile>
#include <QSettings>
#include <optional>

#include "document/spec_document.h"
#include "exchange_dialogs.h"
#include "exchange_jobs.h"
#include "kit/actions.h"
#include "plots/plot_area.h"
#include "runs/run_library.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto width_key = "figure/widthMm";
constexpr auto height_key = "figure/heightMm";
constexpr auto font_key = "figure/fontPoints";
constexpr double clipboard_dots = 192.0;  // pixels per inch

}  // namespace

FigureExport::FigureExport(const Actions& actions, const Parts& parts, QWidget* window)
    : QObject(window), parts_(parts), window_(window) {
  connect(actions[Command::exportPlot], &QAction::triggered, this, &FigureExport::exportFigure);
  connect(actions[Command::copyFigure], &QAction::triggered, this, &FigureExport::copyFigure);
  connect(actions[Command::exportData], &QAction::triggered, this, &FigureExport::exportData);
}

FigureSize FigureExport::size() const {
  const FigureSize usual;
  const auto stored = [this](const char* key, double otherwise) {
    return parts_.settings->value(QLatin1String(key), otherwise).toDouble();
  };
  FigureSize size{stored(width_key, usual.widthMm), stored(height_key, usual.heightMm),
                  stored(font_key, usual.fontPoints)};
  size.heightMm = heightWithRoom(parts_.plots->figure(size)).value_or(size.heightMm);
  return size;
}

QString FigureExport::suggestedFile(const char* suffix) const {
  return QDir(QString::fromStdString(parts_.document->baseDir().string()))
      .filePath(QStringLiteral("%1.%2").arg(parts_.document->displayName().section(QLatin1Char('.'), 0, 0),
                                            QLatin1String(suffix)));
}

void FigureExport::exportFigure() {
  const std::optional<FigureSize> wanted = parts_.dialogs->askFigure(
      window_, size(), [this](const FigureSize& size) { return figureProblem(parts_.plots->figure(size)); });
  if (!wanted) return;
  parts_.settings->setValue(QLatin1String(width_key), wanted->widthMm);
  parts_.settings->setValue(QLatin1String(height_key), wanted->heightMm);
  parts_.settings->setValue(QLatin1String(font_key), wanted->fontPoints);
  if (const QString problem = figureProblem(parts_.plots->figure(*wanted)); !problem.isEmpty())
    return tell({}, problem);
  const QString file = parts_.dialogs->exportFile(window_, suggestedFile("pdf"),
                                                  tr("PDF document (*.pdf);;SVG drawing (*.svg);;PNG image (*.png)"));
  if (file.isEmpty()) return;
  // Painting belongs to the GUI thread; encoding and writing do not.
  PaintedFigure painted = paintFor(parts_.plots->figure(*wanted), file);
  if (!painted.problem.isEmpty()) return tell(file, painted.problem);
  parts_.jobs->run(
      tr("Writing %1").arg(QFileInfo(file).fileName()),
      [painted = std::move(painted), file](const ExchangeJobs::GoOn& goOn) {
        return goOn(ExchangeJobs::unknown) ? std::optional(writePainted(painted, file)) : std::nullopt;
      },
      // Cancelled before it began, or else written or failed.
      [this, file](const std::optional<QString>& problem, bool) {
        if (problem) tell(file, *problem);
      });
}

void FigureExport::copyFigure() {
  const Figure figure = parts_.plots->figure(size());
  if (const QString problem = figureProblem(figure); !problem.isEmpty()) {
    tell({}, problem);
    return;
  }
  auto* data = new QMimeData;
  data->setImageData(paintFigure(figure, clipboard_dots));
  data->setData(QStringLiteral("image/svg+xml"), svgOf(figure));
  QGuiApplication::clipboard()->setMimeData(data);
  parts_.messages->post({QStringLiteral("export"),
                         RunState::finished,
                         tr("The plots are on the clipboard, as a picture and as an SVG drawing"),
                         {},
                         {}});
}

QString FigureExport::dataProblem() const {
  const QList<RunSeries*> runs = parts_.plots->runs();
  if (runs.isEmpty()) return tr("No run is shown. Show those in the plots whose data are to be exported.");
  for (const RunSeries* run : runs)
    if (!parts_.library->isLoaded(run))
      return tr("%1 is still being read, so its data would not be whole. Export them once all of it is in the plots.")
          .arg(run->name());
  return {};
}

void FigureExport::exportData() {
  if (const QString problem = dataProblem(); !problem.isEmpty()) return tell({}, problem);
  const QString name =
      parts_.dialogs->exportFile(window_, suggestedFile("csv"), tr("Comma separated values (*.csv);;JSON (*.json)"));
  if (name.isEmpty()) return;
  const QString suffix = QFileInfo(name).suffix().toLower();
  if (suffix != QLatin1String("csv") && suffix != QLatin1String("json")) {
    tell(name, tr("%1 has no known format. End the name in .csv or .json.").arg(name));
    return;
  }
  const bool json = suffix == QLatin1String("json");
  parts_.jobs->run(
      tr("Writing %1").arg(QFileInfo(name).fileName()),
      [snapshot = parts_.plots->snapshot(), name, json](const ExchangeJobs::GoOn& goOn) {
        QSaveFile file(name);
        const bool written = file.open(QIODevice::WriteOnly) &&
                             (json ? snapshot.writeJson(file, goOn) : snapshot.writeCsv(file, goOn)) && file.commit();
        return written ? QString() : tr("%1 could not be written: %2").arg(name, file.errorString());
      },
      [this, name](const QString& problem, bool cancelled) {
        if (!cancelled || problem.isEmpty()) tell(name, problem);
      });
}

void FigureExport::tell(const QString& file, const QString& problem) {
  parts_.messages->post({QStringLiteral("export"),
                         problem.isEmpty() ? RunState::finished : RunState::failed,
                         problem.isEmpty() ? tr("%1 was written").arg(file) : problem,
                         {},
                         {}});
}

}  // namespace accrue::ui
