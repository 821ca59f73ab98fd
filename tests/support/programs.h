// SPDX-License-Identifier: Apache-2.0
// Programs of this build as a person or a script uses them: what they print where, and how they exit.
#pragma once

#include <signal.h>

#include <QElapsedTimer>
#include <QProcess>
#include <QStringList>

#include "support/places.h"

namespace accrue::test {

/// Exit and output of a program.
struct Outcome {
  int status = -1;  ///< -1: a signal ended it, or it did not end
  QString out;
  QString err;
};

/// A program that has been started. What is left of it is killed with this.
class Program {
 public:
  /// `environment`: NAME=VALUE, over this process' own.
  Program(const QString& path, const QStringList& arguments, const QStringList& environment = {},
          const QString& out_file = {}) {
    process_.setEnvironment(QProcess::systemEnvironment() + environment);
    if (!out_file.isEmpty()) process_.setStandardOutputFile(out_file);
    process_.start(path, arguments);
    process_.waitForStarted();
  }
  pid_t pid() const { return static_cast<pid_t>(process_.processId()); }
  void signal(int number) const { ::kill(pid(), number); }
  /// Waits until its standard error has held the words; false at the deadline.
  bool says(const char* words, int milliseconds = 10000) {
    QElapsedTimer since;
    for (since.start();; process_.waitForReadyRead(10)) {
      hear();
      if (said_.err.contains(QLatin1String(words))) return true;
      if (since.elapsed() > milliseconds || process_.state() == QProcess::NotRunning) return false;
    }
  }
  /// Waits for its end.
  const Outcome& finish(int milliseconds = 30000) {
    const bool ended = process_.state() == QProcess::NotRunning || process_.waitForFinished(milliseconds);
    hear();
    if (ended && process_.exitStatus() == QProcess::NormalExit) said_.status = process_.exitCode();
    return said_;
  }
  /// Returns its standard error so far, for QVERIFY2.
  const char* errors() {
    hear();
    return qUtf8Printable(said_.err);
  }

 private:
  void hear() {
    said_.out += QString::fromUtf8(process_.readAllStandardOutput());
    said_.err += QString::fromUtf8(process_.readAllStandardError());
  }

  QProcess process_;
  Outcome said_;
};

}  // namespace accrue::test
