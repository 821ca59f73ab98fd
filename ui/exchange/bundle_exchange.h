// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QList>
#include <QObject>
#include <QString>
#include <functional>

namespace accrue {
struct BundleContents;
}

namespace accrue::ui {

class ExchangeDialogs;
class ExchangeJobs;
class MessageBar;
class RunLibrary;
class RunNotebook;
class RunSeries;
class SpecDocument;
class WindowFiles;
struct BundleRow;
struct WindowActions;

/// Dependencies of BundleExchange; all outlive it.
struct BundleParts {
  SpecDocument* document = nullptr;
  RunLibrary* library = nullptr;
  RunNotebook* notebook = nullptr;
  WindowFiles* files = nullptr;
  ExchangeDialogs* dialogs = nullptr;
  MessageBar* messages = nullptr;
  ExchangeJobs* jobs = nullptr;
  QWidget* window = nullptr;
  std::function<QList<RunSeries*>()> chosen_runs;  ///< checked initially
  std::function<QByteArray()> layout;
  std::function<bool(const QByteArray&)> take_layout;
};

/// Export and import of runs as one file. Asks for the contents and writes it in the background; imports a bundle into
/// the runs folder, and offers the spec and layout that came with it.
class BundleExchange : public QObject {
  Q_OBJECT

 public:
  BundleExchange(const BundleParts& parts, const WindowActions& actions);

  void importBundle(const QString& file);

 private:
  void exportBundle();
  void askAndWrite(const QList<BundleRow>& rows);
  void showImported(const QString& file, const BundleContents& bundle);
  void takeNotes(const BundleContents& bundle);
  void say(const QString& text, bool failed);

  BundleParts parts_;
  bool asking_ = false;
};

}  // namespace accrue::ui
