// SPDX-License-Identifier: Apache-2.0
#include "channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/events/event_codec.h"

namespace fake_rank {
namespace {

constexpr int heartbeat_ms = 100;

}  // namespace

Channel::Channel(Settings settings) : settings_(settings), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  seq_ = settings.first_seq;
  heartbeat_.phase = "join";
  late_until_ns_ = accrue::monotonic_ns() + settings.late_ms * 1'000'000;
  thread_ = std::thread([this] { run(); });
}

Channel::~Channel() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  thread_.join();
  ::close(wake_fd_);
  ::close(settings_.fd);
}

std::int64_t Channel::now_ns() const {
  return accrue::monotonic_ns() - settings_.origin_ns;
}

void Channel::queue_event(accrue::EventBody body) {
  accrue::RunEvent event{settings_.rank, -1, now_ns(), std::move(body)};
  if (accrue::is_stored(event.body)) event.seq = seq_++;
  outbox_ += accrue::encode_event(event);
  outbox_ += '\n';
}

void Channel::emit(accrue::EventBody body) {
  {
    const std::lock_guard lock(mutex_);
    queue_event(std::move(body));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

void Channel::send_raw(std::string line) {
  const std::lock_guard lock(mutex_);
  outbox_ += line + "\n";
}

void Channel::skip_numbers(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  seq_ += count;
}

void Channel::set_phase(std::string phase, std::int64_t update, std::int64_t micro_step, std::int64_t collective) {
  const std::lock_guard lock(mutex_);
  const auto is_brief = [](const std::string& name) { return name == "checkpoint" || name == "finish"; };
  if (heartbeat_.phase != phase && (is_brief(phase) || is_brief(heartbeat_.phase))) announce_ = true;
  heartbeat_ = {std::move(phase), update, micro_step, collective};
  in_flight_ = micro_step;
  if (!announce_) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

bool Channel::after_micro_step(std::int64_t micro_step) {
  std::unique_lock lock(mutex_);
  // A bare hold stops here; an agreement lets the rank run on to the agreed micro-step.
  const auto must_hold = [&] {
    if (stop_after_ && micro_step >= *stop_after_) return false;
    if (hold_after_) return micro_step >= *hold_after_;
    return asked_to_hold_;
  };
  announced_ = false;
  while (must_hold()) {
    // A pause that was released and requested again before this thread woke is a new one.
    if (hold_after_ && !announced_) {
      announced_ = true;
      heartbeat_.phase = "paused";
      queue_event(accrue::Holding{micro_step, true});
      lock.unlock();
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
      lock.lock();
      continue;  // the answer may have been answered in between
    }
    changed_.wait(lock);
  }
  if (stop_after_ && micro_step >= *stop_after_) return false;
  in_flight_ = micro_step + 1;  // a rank that is asked from now on holds after the next
  return true;
}

void Channel::after_phase(accrue::StepPhase phase, std::int64_t micro_step, const std::function<void()>& report) {
  std::unique_lock lock(mutex_);
  const auto must_hold = [&] {
    return next_phase_ || (hold_in_ && phase == accrue::StepPhase::backward && micro_step >= *hold_in_);
  };
  if (!must_hold()) return;
  lock.unlock();
  report();
  lock.lock();
  if (!must_hold()) return;
  hold_in_.reset();
  next_phase_ = false;
  inside_ = true;
  const auto before = moves_;
  heartbeat_.phase = "paused";
  queue_event(accrue::Holding{micro_step, true, phase});
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  changed_.wait(lock, [&] { return moves_ != before || supervisor_gone_; });
  inside_ = false;
}

bool Channel::stand_still(std::int64_t micro_step) {
  {
    const std::lock_guard lock(mutex_);
    hold_after_ = micro_step;
  }
  return after_micro_step(micro_step);
}

Requests Channel::take_requests() {
  const std::lock_guard lock(mutex_);
  return {checkpoint_ || supervisor_gone_, stop_at_boundary_ || supervisor_gone_, std::exchange(steps_, 0)};
}

void Channel::checkpoint_done() {
  const std::lock_guard lock(mutex_);
  checkpoint_ = false;
}

void Channel::work(double seconds) {
  std::unique_lock lock(mutex_);
  std::condition_variable never;
  never.wait_for(lock, std::chrono::duration<double>(seconds), [] { return false; });
}

void Channel::wait_for_ever() {
  std::unique_lock lock(mutex_);
  std::condition_variable never;
  never.wait(lock, [] { return false; });
}

void Channel::run() {
  auto next_heartbeat = std::chrono::steady_clock::now();
  for (;;) {
    pollfd fds[2] = {{settings_.fd, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (supervisor_gone_) fds[0].fd = -1;
      if (!outbox_.empty() && !is_late()) fds[0].events |= POLLOUT;
    }
    ::poll(fds, 2, heartbeat_ms);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = ::read(wake_fd_, &count, sizeof count);
    take_commands();
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    if (now >= next_heartbeat || std::exchange(announce_, false)) {
      queue_event(heartbeat_);
      next_heartbeat = now + std::chrono::milliseconds(heartbeat_ms);
    }
    const bool sent = flush();
    if (closing_ && (sent || supervisor_gone_)) return;
  }
}

bool Channel::flush() {
  if (is_late()) return false;
  while (!outbox_.empty() && !supervisor_gone_) {
    const auto count = ::send(settings_.fd, outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count < 0) {
      supervisor_gone_ = true;
      changed_.notify_all();
      break;
    }
    outbox_.erase(0, static_cast<std::size_t>(count));
  }
  if (supervisor_gone_) outbox_.clear();
  return true;
}

void Channel::take_commands() {
  char bytes[4096];
  const auto count = ::recv(settings_.fd, bytes, sizeof bytes, MSG_DONTWAIT);
  const std::lock_guard lock(mutex_);
  if (count == 0) {
    supervisor_gone_ = true;
    hold_after_.reset();
    asked_to_hold_ = false;
    changed_.notify_all();
  }
  if (count <= 0 || settings_.deaf) return;
  inbox_.append(bytes, static_cast<std::size_t>(count));
  for (auto end = inbox_.find('\n'); end != std::string::npos; end = inbox_.find('\n')) {
    if (const auto command = accrue::decode_command(inbox_.substr(0, end))) obey(*command);
    inbox_.erase(0, end + 1);
  }
}

void Channel::obey(const accrue::RankCommand& command) {
  switch (command.kind) {
    case accrue::RankCommandKind::hold:
      asked_to_hold_ = true;
      announced_ = false;
      queue_event(accrue::Holding{in_flight_, false});
      break;
    case accrue::RankCommandKind::hold_after:
      // While paused this is a step: the proceed that follows belongs to it.
      stepping_ = inside_ || (hold_after_ && in_flight_ >= *hold_after_ && command.micro_step > in_flight_);
      hold_after_ = command.micro_step;
      asked_to_hold_ = false;
      announced_ = false;
      break;
    case accrue::RankCommandKind::proceed:
      asked_to_hold_ = false;
      if (!stepping_) hold_after_.reset();
      stepping_ = false;
      ++moves_;
      break;
    case accrue::RankCommandKind::hold_in:
      hold_after_.reset();
      hold_in_ = command.micro_step;
      ++moves_;
      break;
    case accrue::RankCommandKind::step_phase:
      hold_after_.reset();
      next_phase_ = true;
      ++moves_;
      break;
    case accrue::RankCommandKind::stop_after:
      hold_in_.reset();
      next_phase_ = false;
      ++moves_;
      stop_after_ = command.micro_step;
      asked_to_hold_ = false;
      hold_after_.reset();
      break;
    case accrue::RankCommandKind::end_now:  // to ranks of another launcher alone
      break;
    case accrue::RankCommandKind::checkpoint:
      checkpoint_ = true;
      break;
    case accrue::RankCommandKind::checkpoint_and_stop:
      checkpoint_ = true;
      stop_at_boundary_ = true;
      hold_in_.reset();
      next_phase_ = false;
      ++moves_;
      break;
    case accrue::RankCommandKind::set_steps:
      steps_ = command.steps;
      break;
  }
  changed_.notify_all();
}

}  // namespace fake_rank
