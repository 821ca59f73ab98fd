// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class ArithmeticPanel;
class CloseGuard;
class FrameClock;
class RunControl;
class RunsPanel;
class StatusRow;

/// Keeps the status row up to date: it speaks of the focused run, else of the one that trains, else of the set-up.
class StatusWatch : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    StatusRow* row;
    RunControl* control;
    RunsPanel* runs;
    const CloseGuard* hosted;  ///< knows the runs of this window
    const ArithmeticPanel* arithmetic;
  };
  StatusWatch(const Parts& parts, FrameClock* frames, QObject* parent);

 private:
  void refresh();

  Parts parts_;
};

}  // namespace accrue::ui
