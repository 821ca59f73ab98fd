// SPDX-License-Identifier: GPL-3.0-or-later
#include "event_pump.h"

#include <utility>

namespace accrue::ui {

EventPump::EventPump(std::function<EventBatch()> drain, QObject* parent) : QObject(parent), drain_(std::move(drain)) {
  timer_.setTimerType(Qt::PreciseTimer);
  timer_.setInterval(frame);
  connect(&timer_, &QTimer::timeout, this, &EventPump::flush);
}

void EventPump::start() {
  timer_.start();
}

void EventPump::stop() {
  timer_.stop();
}

void EventPump::flush() {
  const EventBatch events = drain_();
  if (!events.empty()) Q_EMIT batch(events);
}

}  // namespace accrue::ui
