// SPDX-License-Identifier: Apache-2.0
#include "run_follower.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "accrue/run/base/result.h"
#include "print.h"
#include "signal_ladder.h"

namespace accrue::cli {
namespace {

using Clock = std::chrono::steady_clock;
// After a log-out's signal: time to save, before stopping. Including the time for killing it is less than 30 s.
constexpr auto saving_grace = std::chrono::seconds(20);
constexpr auto stopping_grace = std::chrono::seconds(5);
constexpr auto last_words_grace = std::chrono::seconds(1);

sigset_t handled_set() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, number);
  return set;
}

/// Whether the ranks have met, and were not told to end.
bool trains(RunState state) {
  return state == RunState::running || state == RunState::paused || state == RunState::degraded;
}

class Follower {
 public:
  Follower(EngineHost& host, const FollowOptions& options)
      : host_(host), options_(options), view_(options.style, options.planned_updates) {
    host_.set_wakeup([fd = wake_.get()] {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
    });
  }
  ~Follower() { host_.set_wakeup({}); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  int run() {
    for (;;) {
      pollfd fds[2] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ::poll(fds, 2, 200);
      std::uint64_t count = 0;
      [[maybe_unused]] const auto taken = ::read(wake_.get(), &count, sizeof count);
      take_signals();
      if (left_) return 0;
      for (auto& event : host_.events().drain()) take(std::move(event));
      if (options_.needs_control && !host_.controls() && !is_over(host_.state()))
        return exit_status(ErrorCode::peer_lost);
      if (status_ && is_over(host_.state())) break;  // not the end of a part that was continued
      if (ended_without_a_word()) break;
      if (deadline_ && Clock::now() > *deadline_) end_unsaved();
    }
    view_.end_bar();
    if (status_) return *status_;
    if (const auto failure = host_.failure()) return exit_status(failure->code);
    return exit_status(host_.attached() ? ErrorCode::peer_lost : ErrorCode::cancelled);
  }

 private:
  void take(RunEvent event) {
    auto* const changed = std::get_if<StateChanged>(&event.body);
    if (asked_to_stop_ && changed != nullptr && changed->detail.starts_with("Still "))
      changed->detail += "; the same signal once more ends the run at once";
    view_.show(event);
    if (const auto* finished = std::get_if<RunFinished>(&event.body)) status_ = finished->exit_status;
    if (std::holds_alternative<RunStarted>(event.body)) status_.reset();
    // A run that starts paused may already be paused when this thread learns that it runs.
    if (trains(host_.state()) && options_.on_training && !told_training_) {
      told_training_ = true;
      options_.on_training();
    }
  }

  /// Whether the state is over and its run_finished has had time to arrive: the supervisor of an attached run is gone,
  /// or a run could not be continued.
  bool ended_without_a_word() {
    if (!is_over(host_.state())) {
      over_since_.reset();
      return false;
    }
    if (!over_since_) over_since_ = Clock::now();
    return Clock::now() - *over_since_ > last_words_grace;
  }

  /// Stops without a checkpoint; then kills, as ranks that are still writing one are waited for without a limit.
  void end_unsaved() {
    view_.end_bar();
    if (!std::exchange(dropped_checkpoint_, true)) {
      say("the checkpoint takes too long; stopping without it\n");
      host_.stop();
      deadline_ = Clock::now() + stopping_grace;
    } else {
      say("killing the ranks\n");
      host_.kill();
      deadline_.reset();
    }
  }

  void take_signals() {
    while (const auto signal = take_signal(signals_)) {
      view_.end_bar();
      const int number = *signal;
      if (options_.on_interrupt == OnInterrupt::detach) {
        say("%s", host_.state() == RunState::paused ? "left; the run stays paused\n" : "left; the run goes on\n");
        left_ = true;
      } else if (ladder_.insists(number)) {
        say("killing the ranks\n");
        host_.kill();
      } else if (std::exchange(asked_to_stop_, true)) {
        say("stopping already; the same signal once more kills the ranks\n");
      } else {
        say("%s; %s ends the run at once\n",
            trains(host_.state()) ? "saving a checkpoint at the end of this update, then stopping" : "stopping",
            number == SIGINT ? "a second Ctrl+C" : "the same signal once more");
        host_.checkpoint_and_stop();
        if (number != SIGINT) deadline_ = Clock::now() + saving_grace;  // a log-out does not wait indefinitely
      }
    }
  }

  EngineHost& host_;
  const FollowOptions& options_;
  ProgressView view_;
  OwnedFd signals_ = handled_signals();
  OwnedFd wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  bool asked_to_stop_ = false;
  SignalLadder ladder_;
  bool left_ = false;
  bool told_training_ = false;
  bool dropped_checkpoint_ = false;
  std::optional<Clock::time_point> deadline_;
  std::optional<Clock::time_point> over_since_;
  std::optional<int> status_;
};

}  // namespace

void block_handled_signals() {
  const sigset_t set = handled_set();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

OwnedFd handled_signals() {
  const sigset_t set = handled_set();
  return OwnedFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> take_signal(const OwnedFd& signals) {
  signalfd_siginfo info{};
  if (::read(signals.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

int follow(EngineHost& host, const FollowOptions& options) {
  return Follower(host, options).run();
}

}  // namespace accrue::cli
