// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT, by which launchers and schedulers end ranks: blocked in every thread, and received only by
// explicit waits.
#pragma once

#include <sys/signalfd.h>

#include <csignal>

#include "accrue/run/base/owned_fd.h"

namespace accrue {

inline sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

/// Call it before any thread exists.
inline void block_end_signals() {
  const sigset_t set = end_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

/// Returns a descriptor that is readable once one has arrived.
inline OwnedFd end_signal_fd() {
  const sigset_t set = end_signals();
  return OwnedFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace accrue
