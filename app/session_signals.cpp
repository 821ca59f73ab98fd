// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace accrue::ui {

namespace {

constexpr int watched[] = {SIGTERM, SIGHUP, SIGINT};

/// The handler, which may do almost nothing, writes to it for the event loop.
int handler_end = -1;

void handOn(int number) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe holds more signals than any user sends.
  [[maybe_unused]] const ssize_t written = ::write(handler_end, &byte, 1);
  errno = before;
}

}  // namespace

SessionSignals::SessionSignals(QObject* parent) : QObject(parent) {
  auto pipe = pipe_to_read("no pipe for signals can be made");
  if (!pipe) return;  // no descriptor is left: signals end the program by default
  pipe_ = std::move(*pipe);
  for (const OwnedFd* end : {&pipe_.ours, &pipe_.theirs}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  handler_end = pipe_.theirs.get();
  arrived_ = std::make_unique<QSocketNotifier>(pipe_.ours.get(), QSocketNotifier::Read);
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
  handler_end = -1;
}

void SessionSignals::read() {
  unsigned char numbers[16];
  const ssize_t count = ::read(pipe_.ours.get(), numbers, sizeof numbers);
  for (ssize_t i = 0; i < count; ++i) Q_EMIT received(numbers[i], ladder_.insists(numbers[i]));
}

}  // namespace accrue::ui
