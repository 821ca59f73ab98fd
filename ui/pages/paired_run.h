// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>

#include "models/run_series.h"

class QAction;

namespace accrue::ui {

class MessageBar;
class PairGuide;
class PreflightRunner;
class RunControl;
class RunLibrary;
class RunsPanel;
class WindowFiles;

/// Trains the set-up as the partner of the focused run: same seed, same order of samples, at most one key changed, so
/// that the difference of the two losses is the effect of that key, and exactly 0 if nothing is changed.
class PairedRun : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    RunControl* control;
    PreflightRunner* preflight;
    RunLibrary* library;
    RunsPanel* runs;
    WindowFiles* files;
    PairGuide* guide;
    MessageBar* bar;
  };
  PairedRun(const Parts& parts, QObject* parent);
  /// With the form as it stands: it must hold valid values.
  void start();

 private:
  void startChecked();

  Parts parts_;
  QPointer<RunSeries> first_;  ///< whose partner is being checked, or begins
  bool checking_ = false;
};

}  // namespace accrue::ui
