// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class RunSeries;

/// Work that a run would lose if this process ended now.
enum class Hosting {
  none,    ///< none: its ranks have ended, or another process hosts them
  begins,  ///< its folder, which is being made and must not be interrupted
  trains,  ///< its ranks, which are training or held
  ends     ///< its ranks, which are ending already
};

/// A place in the window for one run at a time. Thread: GUI.
class HostedRun : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  /// The last run of this place; nullptr before the first.
  virtual RunSeries* run() const = 0;
  virtual Hosting hosting() const = 0;
  /// Ends it at the end of the current update, with a checkpoint; at once if there is nothing to save yet. A run that
  /// is beginning ends once it has begun.
  virtual void saveAndEnd() = 0;
  /// Ends it without a checkpoint, even one that is about to be taken.
  virtual void endUnsaved() = 0;
  virtual void kill() = 0;
  /// Whether kill() ended the last run of this place: the user gave up its unsaved work.
  virtual bool wasKilled() const = 0;

 Q_SIGNALS:
  /// The value may have changed; the receiver calls hosting().
  void hostingChanged();
};

}  // namespace accrue::ui
