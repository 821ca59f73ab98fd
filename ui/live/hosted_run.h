// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class RunSeries;

/// What a run would lose if this process ended now.
enum class Hosting {
  none,    ///< nothing: its ranks have ended, or another process hosts them
  begins,  ///< its folder is being made, which cannot be interrupted
  trains,  ///< its ranks, which train or are held
  ends     ///< its ranks, which are ending already
};

/// A place in the window where runs train, one at a time. Thread: GUI.
class HostedRun : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  /// The last one that was here; nullptr before the first.
  virtual RunSeries* run() const = 0;
  virtual Hosting hosting() const = 0;
  /// At the end of the current update, with a checkpoint; before there is anything to save, at once. One that begins
  /// ends when it has begun.
  virtual void saveAndEnd() = 0;
  /// Without a checkpoint, even one that is about to be taken.
  virtual void endUnsaved() = 0;
  virtual void kill() = 0;
  /// Whether the last one that was here was killed by kill(): the user gave up what it had not saved.
  virtual bool wasKilled() const = 0;

 Q_SIGNALS:
  /// Perhaps: the receiver asks hosting().
  void hostingChanged();
};

}  // namespace accrue::ui
