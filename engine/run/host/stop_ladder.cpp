// SPDX-License-Identifier: Apache-2.0
#include "stop_ladder.h"

#include <algorithm>

namespace accrue {

void StopLadder::begin_attempt() {
  ending_ = Ending::none;
  rung_ = Rung::none;
}

void StopLadder::ask(Ending ending, Clock::time_point now, Clock::time_point until) {
  if (rung_ != Rung::asked) {
    asked_at_ = now;
    next_word_ = now + 2 * grace_;
  }
  ending_ = ending;
  rung_ = Rung::asked;
  deadline_ = until;
}

void StopLadder::stop(Clock::time_point now, bool all_joined) {
  ask(Ending::stop, now, all_joined ? now + grace_ : now);
}

void StopLadder::save(Ending ending, Clock::time_point now) {
  ask(ending, now, Clock::time_point::max());
}

void StopLadder::fail() {
  if (ending_ == Ending::none) ending_ = Ending::failure;
}

bool StopLadder::refuse_restart() {
  if (failed()) ending_ = Ending::last_failure;
  return failed();
}

void StopLadder::kill() {
  ending_ = Ending::kill;
}

void StopLadder::close(Clock::time_point now) {
  closing_ = true;
  hurry(now);
}

void StopLadder::hurry(Clock::time_point now) {
  deadline_ = std::min(deadline_, now + grace_);
}

void StopLadder::killed(Clock::time_point now) {
  rung_ = Rung::killed;
  deadline_ = now + grace_;
}

void StopLadder::leave_out(Clock::duration gap) {
  if (rung_ != Rung::none && deadline_ != Clock::time_point::max()) deadline_ += gap;
}

bool StopLadder::kill_is_due(Clock::time_point now, bool busy) const {
  if (rung_ == Rung::none || now < deadline_) return false;
  return rung_ == Rung::killed || closing_ || !busy;
}

bool StopLadder::word_is_due(Clock::time_point now) {
  if (rung_ != Rung::asked || now < next_word_) return false;
  next_word_ = now + 2 * grace_;
  return true;
}

}  // namespace accrue
