// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cstdint>
#include <optional>

class QWidget;

namespace accrue::ui {

enum class CloseAnswer { keepRunning, checkpointAndStop, stopNow, cancel };

struct CloseChoice {
  CloseAnswer answer = CloseAnswer::cancel;
  bool remember = false;
};

/// Questions about a run that trains.
class RunDialogs {
 public:
  virtual ~RunDialogs() = default;
  /// Called when the window is about to close while it hosts a run.
  virtual CloseChoice askClose(QWidget* parent, const QString& sentence) = 0;
  /// N from the next window on; empty: cancelled.
  virtual std::optional<std::int64_t> askSteps(QWidget* parent, std::int64_t now) = 0;
};

}  // namespace accrue::ui
