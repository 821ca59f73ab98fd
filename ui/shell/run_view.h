// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class CentrePage;
class Docks;
class EventsPanel;
class FrameClock;
class RunControl;
class RunLibrary;
class RunOverlay;
class RunSeries;
class RunsPanel;

/// Draws the runs that the runs table shows, and makes the panels follow the focused one.
class RunView : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    RunControl* control;
    RunLibrary* library;
    RunsPanel* runs;
    EventsPanel* events;
    CentrePage* centre;
    Docks* docks;
    FrameClock* frames;
  };
  RunView(const Parts& parts, QObject* parent);

  /// Over samples: runs with different window lengths can be compared there.
  void compare(const QList<RunSeries*>& runs);

 private:
  void showRuns();
  void takeBegun(RunSeries* run);
  void takeOpened(RunSeries* run);
  void showWhetherAny();

  Parts parts_;
  RunOverlay* overlay_;
};

}  // namespace accrue::ui
