// SPDX-License-Identifier: GPL-3.0-or-later
// EventPump: a 33 ms timer empties the engine's queue and hands the events over as one batch, so that the cost of
// showing a run is paid once a frame, whatever the rate of its events.
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <functional>
#include <vector>

#include "accrue/run/run_event.h"

namespace accrue::ui {

using EventBatch = std::vector<RunEvent>;

/// Thread: GUI.
class EventPump : public QObject {
  Q_OBJECT

 public:
  static constexpr std::chrono::milliseconds frame{33};

  explicit EventPump(std::function<EventBatch()> drain, QObject* parent = nullptr);

  void start();
  void stop();
  /// Hands over the waiting events at once (also when stopped).
  void flush();

 Q_SIGNALS:
  void batch(const accrue::ui::EventBatch& events);

 private:
  std::function<EventBatch()> drain_;
  QTimer timer_;
};

}  // namespace accrue::ui
