// SPDX-License-Identifier: Apache-2.0
#include "failure_book.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

#include "accrue/run/base/counted.h"

namespace accrue {
namespace {

using namespace std::chrono_literals;

constexpr auto causes_may_turn_up = 400ms;
constexpr std::int64_t most_fruitless = 2;
constexpr auto restart_window = 10min;

bool is_consequence(ErrorCode code, const ExitReport& exit) {
  return exit.signal == 0 && !exit.lost &&
         (code == ErrorCode::peer_lost || code == ErrorCode::hang || code == ErrorCode::rendezvous);
}

bool is_retryable(ErrorCode code) {
  return code == ErrorCode::peer_lost || code == ErrorCode::hang;
}

}  // namespace

void FailureBook::begin_attempt() {
  failure_.reset();
  held_back_.clear();
  commits_ = 0;
}

void FailureBook::note(ErrorCode code, std::string message) {
  if (!failure_) failure_ = Failure{code, std::move(message)};
}

bool FailureBook::hold_back(std::size_t rank, const ExitReport& exit, ErrorCode code, Clock::time_point now) {
  if (!is_consequence(code, exit)) return false;
  if (held_back_.empty()) settle_at_ = now + causes_may_turn_up;
  held_back_.emplace_back(rank, exit);
  return true;
}

std::int64_t FailureBook::recent_restarts(Clock::time_point now) const {
  return std::ranges::count_if(recent_, [now](Clock::time_point at) { return now - at < restart_window; });
}

std::int64_t FailureBook::fruitless_after_this() const {
  return restarts_ > 0 && commits_ == 0 ? fruitless_ + 1 : fruitless_;
}

bool FailureBook::may_restart(std::int64_t most, Clock::time_point now) const {
  return failure_ && is_retryable(failure_->code) && recent_restarts(now) < most &&
         fruitless_after_this() < most_fruitless;
}

std::string FailureBook::no_restart_text(std::int64_t most, Clock::time_point now) const {
  if (!failure_ || !is_retryable(failure_->code) || restarts_ == 0) return {};
  const std::int64_t recent = recent_restarts(now);
  if (recent < most)
    return fmt::format(". Not restarted again: {} brought no new checkpoint", counted(fruitless_ + 1, "restart"));
  return fmt::format(". Not restarted again: {} in ten minutes, as launch.max_restarts allows",
                     counted(recent, "restart"));
}

void FailureBook::restarted(Clock::time_point now) {
  fruitless_ = commits_ > 0 ? 0 : fruitless_after_this();
  ++restarts_;
  std::erase_if(recent_, [now](Clock::time_point at) { return now - at >= restart_window; });
  recent_.push_back(now);
}

ErrorCode code_of_name(std::string_view name) {
  for (int i = static_cast<int>(ErrorCode::unset); i <= static_cast<int>(ErrorCode::internal); ++i)
    if (name == to_string(static_cast<ErrorCode>(i))) return static_cast<ErrorCode>(i);
  return ErrorCode::internal;
}

ErrorCode code_of_exit(const ExitReport& exit) {
  if (exit.signal != 0 || exit.lost) return ErrorCode::peer_lost;
  switch (exit.status) {
    case 2:
      return ErrorCode::config;
    case 3:
      return ErrorCode::numerics;
    case 4:
      return ErrorCode::peer_lost;
    case 5:
      return ErrorCode::disk;
    default:
      return ErrorCode::internal;
  }
}

std::string cause_text(const std::string& rank, const ExitReport& exit) {
  if (exit.lost) return fmt::format("{} was lost: its connection ended", rank);
  if (exit.signal == 0) return fmt::format("{} ended with exit status {}", rank, exit.status);
  if (exit.signal == SIGKILL) return fmt::format("{} was killed (signal 9)", rank);
  return fmt::format("{} died of signal {} ({})", rank, exit.signal, ::strsignal(exit.signal));
}

bool stays_broken(ErrorCode code) {
  return code == ErrorCode::config || code == ErrorCode::data || code == ErrorCode::device ||
         code == ErrorCode::protocol;
}

}  // namespace accrue
