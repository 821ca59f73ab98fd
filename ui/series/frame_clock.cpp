// SPDX-License-Identifier: GPL-3.0-or-later
#include "frame_clock.h"

#include <utility>

#include "event_pump.h"

namespace accrue::ui {

FrameClock::FrameClock(QObject* parent) : QObject(parent) {
  timer_.setTimerType(Qt::PreciseTimer);
  timer_.setInterval(EventPump::frame);
  connect(&timer_, &QTimer::timeout, this, &FrameClock::tick);
}

void FrameClock::tick() {
  if (std::exchange(moved_, false)) Q_EMIT refresh();
  Q_EMIT frame();
}

}  // namespace accrue::ui
