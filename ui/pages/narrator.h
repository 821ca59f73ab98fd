// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QString>
#include <QTimer>
#include <chrono>
#include <cstdint>

#include "accrue/run/run_state.h"

class QLabel;

namespace accrue::ui {

class RunControl;

/// Tells the followed run in sentences, one at a time, for people who hear the window: its state at once, its progress
/// not more often than it can be spoken. The sentences stand in a label, whose change screen readers announce.
class Narrator : public QObject {
  Q_OBJECT

 public:
  /// Time between two sentences on progress.
  static constexpr std::chrono::milliseconds pause{4000};

  Narrator(RunControl* control, QLabel* label, QObject* parent = nullptr);
  void setOn(bool on);
  QString sentence() const { return said_; }

 Q_SIGNALS:
  void said(const QString& sentence);

 private:
  void tell();
  void say(const QString& sentence);
  QString progressSentence() const;

  RunControl* control_;
  QLabel* label_;
  bool on_ = false;
  QString said_;
  RunState state_ = RunState::idle;
  QString detail_;
  std::int64_t update_ = -1;  ///< told last
  double loss_ = 0.0;         ///< of it
  QElapsedTimer since_;
  QTimer later_;
};

}  // namespace accrue::ui
