// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <cstdint>
#include <memory>

#include "bridge/job_runner.h"
#include "models/audio_output.h"

namespace accrue::ui {

class RunControl;

/// Plays the loss of the followed run, for people who hear the window: a short tone for an update, high for a large
/// loss and low for a small one of this run. Updates that come while a tone sounds are passed over, so that what is
/// heard is never late. Thread: GUI; the tones are played in the background.
class LossTone : public QObject {
  Q_OBJECT

 public:
  static constexpr double seconds = 0.1;  ///< of a tone

  LossTone(RunControl* control, std::shared_ptr<AudioOutput> output, QObject* parent = nullptr);
  void setOn(bool on);
  bool isOn() const { return on_; }

 Q_SIGNALS:
  /// No tone could be played, and none is tried until it is switched on again.
  void failed(const QString& why);

 private:
  void tell();
  void closeOutput();

  RunControl* control_;
  std::shared_ptr<AudioOutput> output_;
  bool on_ = false;
  bool sounds_ = false;
  const void* run_ = nullptr;  ///< whose update was played last; compared only
  std::int64_t update_ = -1;
  JobRunner jobs_;
};

}  // namespace accrue::ui
