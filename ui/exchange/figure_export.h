// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "plots/figure_size.h"

class QSettings;
class QWidget;

namespace accrue::ui {

class ExchangeDialogs;
class ExchangeJobs;
class MessageBar;
class PlotArea;
class RunLibrary;
class SpecDocument;
class Actions;

/// Commands that export the plots: a figure in a file or on the clipboard, the data as CSV or JSON. Files are written
/// in the background.
class FigureExport : public QObject {
  Q_OBJECT

 public:
  /// Its dependencies; all outlive it.
  struct Parts {
    PlotArea* plots = nullptr;
    MessageBar* messages = nullptr;
    ExchangeDialogs* dialogs = nullptr;
    QSettings* settings = nullptr;  ///< remembers the figure's size
    const SpecDocument* document = nullptr;
    const RunLibrary* library = nullptr;
    ExchangeJobs* jobs = nullptr;
  };
  FigureExport(const Actions& actions, const Parts& parts, QWidget* window);

 private:
  void exportFigure();
  void copyFigure();
  void exportData();
  /// Reason why the data cannot be exported now; empty if they can.
  QString dataProblem() const;
  /// Last chosen size, or higher if the shown plots require it.
  FigureSize size() const;
  QString suggestedFile(const char* suffix) const;
  /// Reports a result. An empty problem: the file was written.
  void tell(const QString& file, const QString& problem);

  Parts parts_;
  QWidget* window_;
};

}  // namespace accrue::ui
