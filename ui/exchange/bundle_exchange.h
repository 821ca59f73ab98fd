// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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
class SpecFiles;
struct BundleRow;
class Actions;

/// Dependencies of BundleExchange; all outlive it.
struct BundleParts {
  SpecDocument* document = nullptr;
  RunLibrary* library = nullptr;
  RunNotebook* notebook = nullptr;
  SpecFiles* files = nullptr;
  ExchangeDialogs* dialogs = nullptr;
  MessageBar* messages = nullptr;
  ExchangeJobs* jobs = nullptr;
  QWidget* window = nullptr;
  std::function<QList<RunSeries*>()> chosen_runs;  ///< checked when the question is asked
};

/// Runs as one file, out and in: asks what goes along, writes it in the background; imports a bundle into the runs
/// folder, and offers the spec that came with it.
class BundleExchange : public QObject {
  Q_OBJECT

 public:
  BundleExchange(const BundleParts& parts, const Actions& actions);

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
