// SPDX-License-Identifier: GPL-3.0-or-later
// EventPump: a 33 ms timer that empties the engine's queue and delivers the events as one batch. So showing a run costs
// one pass per frame, whatever the rate of its events.
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <functional>
#include <vector>

#include "accrue/run/events/run_event.h"

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
  /// Delivers the waiting events at once (also when stopped).
  void flush();

 Q_SIGNALS:
  void batch(const accrue::ui::EventBatch& events);

 private:
  std::function<EventBatch()> drain_;
  QTimer timer_;
};

}  // namespace accrue::ui
