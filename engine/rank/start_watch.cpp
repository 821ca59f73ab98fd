// SPDX-License-Identifier: Apache-2.0
#include "rank/start_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "accrue/run/base/result.h"
#include "rank/end_signals.h"

namespace accrue {

StartWatch::StartWatch(std::int64_t rank, std::chrono::milliseconds join_timeout)
    : rank_(rank),
      limit_(3 * join_timeout),
      signal_fd_(end_signal_fd()),
      over_fd_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { watch(); }) {}

StartWatch::~StartWatch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(over_fd_.get(), &one, sizeof one);
  thread_.join();
}

void StartWatch::watch() const {
  std::array<pollfd, 2> fds{{{over_fd_.get(), POLLIN, 0}, {signal_fd_.get(), POLLIN, 0}}};
  const auto deadline = std::chrono::steady_clock::now() + limit_;
  while (fds[0].revents == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      std::fprintf(stderr,
                   "accrue-rank %lld: the ranks did not meet within %.0f s. A rank or the host of MASTER_ADDR does not "
                   "answer: its process may be stopped. (launch.join_timeout_s)\n",
                   static_cast<long long>(rank_), static_cast<double>(limit_.count()) / 1000.0);
      ::_exit(exit_status(ErrorCode::rendezvous));
    }
    ::poll(fds.data(), fds.size(), static_cast<int>(left.count()));
    if (fds[1].revents != 0 && fds[0].revents == 0) {
      std::fprintf(stderr, "accrue-rank %lld: ended by a signal before the ranks had met\n",
                   static_cast<long long>(rank_));
      ::_exit(exit_status(ErrorCode::cancelled));
    }
  }
}

}  // namespace accrue
