// SPDX-License-Identifier: GPL-3.0-or-later
// A window in which a pair can train at the same time, and what trains of it without the window.
#pragma once

#include <signal.h>

#include <QDir>
#include <QFile>
#include <QTest>
#include <cstdint>

#include "accrue/run/record/run_store.h"
#include "live/companion_run.h"
#include "studio_fixture.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

/// Processes of this machine whose command line has these words: the ranks of a run and what supervises them have its
/// folder.
inline QList<pid_t> processesWith(const QString& words) {
  QList<pid_t> found;
  for (const QString& name : QDir(QStringLiteral("/proc")).entryList(QDir::Dirs)) {
    bool is_process = false;
    const auto pid = static_cast<pid_t>(name.toInt(&is_process));
    QFile file(QStringLiteral("/proc/%1/cmdline").arg(name));
    if (is_process && file.open(QIODevice::ReadOnly) && file.readAll().contains(words.toUtf8())) found.append(pid);
  }
  return found;
}

inline RunSpec pairSpec(std::int64_t updates) {
  RunSpec spec = smallSpec(updates, 1);
  spec.run.name = "Pair";
  return spec;
}

/// With a run of one rank that was begun and ended, and has the focus, on a machine of so many cores. What still trains
/// at the end is killed.
class PairStudio : public OpenStudio {
 public:
  explicit PairStudio(std::int64_t cores, std::int64_t updates = 12)
      : OpenStudio(pairSpec(updates), "micro_ms=2"), companion(window->findChild<CompanionRun*>()) {
    HostFacts facts = preflight->hostFacts();
    facts.cores = cores;
    preflight->setHostFacts(facts);
    QTRY_VERIFY_WITH_TIMEOUT(preflight->isCurrent(), patience_ms);
    action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(control->run() && control->run()->last().update >= 1, patience_ms);
    endRun();
  }
  ~PairStudio() {
    for (const pid_t pid : processesWith(home->path())) ::kill(pid, SIGKILL);
  }
  PairStudio(const PairStudio&) = delete;
  PairStudio& operator=(const PairStudio&) = delete;

  /// Both at the same time, past their first update.
  void trainPair() {
    action("trainPairAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(bothTrain(), patience_ms);
  }
  bool bothTrain() const {
    return control->isLive() && companion->isLive() && control->run()->last().update >= 1 &&
           companion->run()->last().update >= 1;
  }
  QString message() const { return find<MessageBar>("messageBar")->text(); }

  CompanionRun* companion;
};

}  // namespace accrue::ui
