// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QString>
#include <QTimer>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "accrue/run/events/run_state.h"

class QAction;
class QSettings;

namespace accrue::ui {

class ElidedLabel;
class LessonPlayer;
class RunControl;
class RunSeries;

/// Narrator of the followed run in sentences, one at a time, for people who listen to the window. It announces a state
/// at once. Events and progress come no faster than they can be spoken, failures first. Of several events of a kind it
/// announces the newest. The sentences are shown in a label, whose changes screen readers announce.
class Narrator : public QObject {
  Q_OBJECT

 public:
  /// Pause after a sentence before the next one that is not a state.
  static constexpr std::chrono::milliseconds pause{4000};

  Narrator(RunControl* control, LessonPlayer* lesson, ElidedLabel* label, QObject* parent = nullptr);
  void setOn(bool on);
  /// On as long as the action is checked, which the settings remember.
  void obey(QAction* action, QSettings* settings);
  QString sentence() const { return said_; }

 Q_SIGNALS:
  void said(const QString& sentence);

 private:
  /// Part of a run that was announced, or had happened before it was followed.
  struct Told {
    std::size_t problems = 0;
    bool red = false;  ///< the lamp is red
    std::size_t skipped = 0;
    std::size_t evaluations = 0;
    std::int64_t checkpoint = 0;
  };
  static Told allOf(const RunSeries& run);

  void tell();
  bool tellState();
  /// Returns the most urgent unannounced news; empty if there is none.
  QString takeNews();
  void hearLesson();
  void say(const QString& sentence);
  QString progressSentence() const;

  RunControl* control_;
  LessonPlayer* lesson_;
  ElidedLabel* label_;
  bool on_ = false;
  QString said_;
  QPointer<const RunSeries> run_;
  Told told_;
  std::size_t steps_done_ = 0;  ///< of the lesson
  QString of_lesson_;           ///< to be announced
  RunState state_ = RunState::idle;
  QString detail_;
  std::int64_t update_ = -1;  ///< announced last
  double loss_ = 0.0;         ///< its loss
  QElapsedTimer since_;
  QTimer later_;
};

}  // namespace accrue::ui
