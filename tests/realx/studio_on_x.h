// SPDX-License-Identifier: GPL-3.0-or-later
// The studio in a session of its own on a real X server, in a home of its own, and what can be known of it from
// outside: its run folders and its window's title.
#pragma once

#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>

#include "x_session.h"

class StudioOnX {
 public:
  ~StudioOnX();

 protected:
  /// Starts the session. Ranks are this program's, and what the fake one does is the script's.
  bool begin(const char* rank_program, const char* script = "");
  /// Starts the studio and waits until its window has the focus.
  bool startStudio(const QStringList& arguments);
  /// Run folders, by name.
  QStringList runs() const;
  /// A run's events of a kind, oldest first.
  QList<QJsonObject> events(const QString& run, const QString& kind) const;
  /// The run's newest state; empty before it has one.
  QString state(const QString& run) const;
  /// No rank of the run is a process any more.
  bool ranksAreGone(const QString& run) const;

  XSession x_;
  QTemporaryDir home_;
  QProcess studio_;
  QString window_;
};
