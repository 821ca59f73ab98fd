// SPDX-License-Identifier: GPL-3.0-or-later
// The studio in a session of its own on a real X server, in a home of its own, and what can be known of it from
// outside: its run folders and its window's title.
#pragma once

#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <string>

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
  /// A key, and again where nothing came of it, as a person would: what the folder says may be ahead of the window, and
  /// a key of that moment is pressed in another state.
  bool press(const char* key, const std::function<bool()>& done);
  /// A command of a menu, by their letters.
  bool choose(const char* menu, const char* command);
  /// Finds the field of a setting (key=value) by its key, and gives it the value as its editor takes it.
  void answer(const std::string& setting);
  /// Into the plot of the losses, so that its keys go there.
  void clickPlot();
  /// The newest run begun by `start`; empty where none came.
  QString begun(const std::function<void()>& start);
  /// Whether the title mentions no run in progress.
  bool isAtRest() const { return !x_.title(window_).contains(QLatin1Char('(')); }
  /// A picture of the screen, beside the results of the tests.
  void keepPicture(const QString& name) const;
  /// Returns a setting that the studio keeps between sessions.
  QVariant setting(const char* key) const;

  XSession x_;
  QTemporaryDir home_;
  QProcess studio_;
  QString window_;
};
