// SPDX-License-Identifier: Apache-2.0
#include "rank/hold_gate.h"

#include <algorithm>

namespace accrue {

void HoldGate::apply(const RankCommand& command) {
  std::optional<Holding> reply;
  {
    const std::scoped_lock lock(mutex_);
    switch (command.kind) {
      case RankCommandKind::hold:
        reply = Holding{in_flight_, false};
        announced_ = false;
        if (!hold_after_) hold_after_ = in_flight_;
        break;
      case RankCommandKind::hold_after:
        stepping_ = inside_ || (agreed_ && must_stand() && command.micro_step > in_flight_);
        hold_after_ = agreed_ ? std::max(*hold_after_, command.micro_step) : command.micro_step;
        agreed_ = true;
        announced_ = false;
        break;
      case RankCommandKind::proceed:
        if (!stepping_) release();
        stepping_ = false;
        ++moves_;
        break;
      case RankCommandKind::hold_in:
        release();
        hold_in_ = command.micro_step;
        break;
      case RankCommandKind::step_phase:
        release();
        next_phase_ = true;
        break;
      case RankCommandKind::stop_after:
        release();
        stop_after_ = command.micro_step;
        break;
      case RankCommandKind::checkpoint:
        requests_.checkpoint = true;
        break;
      case RankCommandKind::checkpoint_and_stop:
        requests_.checkpoint = requests_.stop = true;
        release();
        break;
      case RankCommandKind::set_steps:
        requests_.steps = command.steps;
        break;
      case RankCommandKind::end_now:  // handled by the channel
        break;
    }
  }
  if (reply) answer_(*reply);
  changed_.notify_all();
}

void HoldGate::supervisor_gone() {
  {
    const std::scoped_lock lock(mutex_);
    gone_ = true;
    requests_.checkpoint = requests_.stop = true;
    release();
  }
  changed_.notify_all();
}

Gate HoldGate::wait_before(std::int64_t micro_step, const std::function<void()>& catch_up) {
  std::unique_lock lock(mutex_);
  in_flight_ = std::max(in_flight_, micro_step - 1);
  if (!must_stop() && must_stand()) {
    lock.unlock();
    catch_up();
    lock.lock();
  }
  while (!must_stop() && must_stand()) {
    standing_.store(true, std::memory_order_relaxed);
    if (agreed_ && !announced_) {
      announced_ = true;
      const Holding held{in_flight_, true};
      lock.unlock();
      answer_(held);
      lock.lock();
      continue;
    }
    changed_.wait(lock);
  }
  standing_.store(false, std::memory_order_relaxed);
  if (must_stop()) return {.stop = true};
  in_flight_ = micro_step;
  return {};
}

void HoldGate::wait_after(StepPhase phase, const std::function<void()>& catch_up) {
  std::unique_lock lock(mutex_);
  if (!must_stand_after(phase)) return;
  lock.unlock();
  catch_up();
  lock.lock();
  if (!must_stand_after(phase)) return;
  hold_in_.reset();
  next_phase_ = false;
  inside_ = true;
  standing_.store(true, std::memory_order_relaxed);
  const Holding held{in_flight_, true, phase};
  const std::int64_t before = moves_;
  lock.unlock();
  answer_(held);
  lock.lock();
  changed_.wait(lock, [&] { return moves_ != before; });
  inside_ = false;
  standing_.store(false, std::memory_order_relaxed);
}

void HoldGate::hold_here() {
  const std::scoped_lock lock(mutex_);
  if (gone_) return;
  hold_after_ = in_flight_;
  agreed_ = true;
  announced_ = false;
}

BoundaryRequests HoldGate::take_requests() {
  const std::scoped_lock lock(mutex_);
  const BoundaryRequests taken = requests_;
  requests_.checkpoint = requests_.stop && requests_.checkpoint;
  requests_.steps = 0;
  return taken;
}

void HoldGate::release() {
  hold_after_.reset();
  stepping_ = false;
  agreed_ = false;
  announced_ = false;
  hold_in_.reset();
  next_phase_ = false;
  ++moves_;
}

}  // namespace accrue
