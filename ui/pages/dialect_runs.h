// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QStringList>

#include "accrue/run/dialect_comparison.h"

namespace accrue::ui {

class DialectRunner;
class MessageBar;
class RunQueue;
class SpecDocument;

/// The first error for which a dialect cannot run the spec; empty if it can.
QString refusalOf(const DialectPlan& answer);

/// "Run all five": turns the comparison's plans into a queue of ordinary runs, one per dialect, and shows its progress
/// and which dialects it left out. Thread: GUI.
class DialectRuns : public QObject {
  Q_OBJECT

 public:
  DialectRuns(SpecDocument* document, DialectRunner* dialects, RunQueue* queue, MessageBar* bar, QObject* parent);

  /// Begins once the comparison belongs to the current document.
  void start();

 Q_SIGNALS:
  /// The first run is about to begin.
  void aboutToBegin();
  /// Nothing could be queued; the message bar shows why.
  void refused();

 private:
  void startCompared();
  void showProgress();
  void showEnd();

  SpecDocument* document_;
  DialectRunner* dialects_;
  RunQueue* queue_;
  MessageBar* bar_;
  QStringList left_out_;
  bool asked_ = false;
};

}  // namespace accrue::ui
