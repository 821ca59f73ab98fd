// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace accrue::ui {

namespace {

constexpr int watched[] = {SIGTERM, SIGHUP, SIGINT};

/// Connects the handler, which may do almost nothing, to the event loop.
int pipe_ends[2] = {-1, -1};

void handOn(int number) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe holds more signals than any user sends.
  [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], &byte, 1);
  errno = before;
}

}  // namespace

SessionSignals::SessionSignals(QObject* parent) : QObject(parent) {
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return;  // no descriptor is left: signals end the program by default
  arrived_ = std::make_unique<QSocketNotifier>(pipe_ends[0], QSocketNotifier::Read);
  connect(arrived_.get(), &QSocketNotifier::activated, this, &SessionSignals::read);
  struct sigaction action {};
  action.sa_handler = handOn;
  action.sa_flags = SA_RESTART;
  for (const int number : watched) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(number, &action, nullptr);
  }
}

SessionSignals::~SessionSignals() {
  if (!arrived_) return;
  for (const int number : watched) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == handOn) ::signal(number, SIG_DFL);
  }
  arrived_.reset();
  for (int& end : pipe_ends) {
    ::close(end);
    end = -1;
  }
}

void SessionSignals::read() {
  unsigned char numbers[16];
  const ssize_t count = ::read(pipe_ends[0], numbers, sizeof numbers);
  for (ssize_t i = 0; i < count; ++i) Q_EMIT received(numbers[i], ladder_.insists(numbers[i]));
}

}  // namespace accrue::ui
