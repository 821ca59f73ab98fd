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

/// What is asked about a run that trains.
class RunDialogs {
 public:
  virtual ~RunDialogs() = default;
  /// A run is hosted in the window that is about to close.
  virtual CloseChoice askClose(QWidget* parent, const QString& sentence) = 0;
  /// N from the next window on; empty = cancelled.
  virtual std::optional<std::int64_t> askSteps(QWidget* parent, std::int64_t now) = 0;
};

}  // namespace accrue::ui
