// SPDX-License-Identifier: Apache-2.0
#include "hold_agreement.h"

#include <algorithm>
#include <utility>

namespace accrue {

HoldAgreement::Move HoldAgreement::begin(Goal goal) {
  Move move;
  if (goal == Goal::stop) goal_ = Goal::stop;
  switch (stage_) {
    case Stage::open:
      stage_ = Stage::asking;
      goal_ = goal;
      std::fill(in_flight_.begin(), in_flight_.end(), std::nullopt);
      std::fill(held_at_.begin(), held_at_.end(), std::nullopt);
      move.broadcast.push_back({RankCommandKind::hold, 0});
      break;
    case Stage::asking:
      break;  // pending answers serve either goal
    case Stage::settling:
    case Stage::held:
      // In a step by a phase some ranks may already be in the next micro-step; they report where once they are paused.
      if (goal == Goal::stop && stage_ == Stage::settling && by_phase_)
        stops_when_reached_ = true;
      else if (goal == Goal::stop)
        move.broadcast.push_back({RankCommandKind::stop_after, target_});
      break;
  }
  return move;
}

HoldAgreement::Move HoldAgreement::answer(std::size_t rank, const Holding& holding) {
  Move move;
  if (rank >= in_flight_.size()) return move;
  if (holding.phase != StepPhase::none && !to_phase_) return move;  // of an earlier step
  if (holding.held) {
    held_at_[rank] = holding.micro_step;
    phase_ = holding.phase;
  }
  switch (stage_) {
    case Stage::asking:
      in_flight_[rank] = std::max(holding.micro_step, in_flight_[rank].value_or(0));
      if (std::all_of(in_flight_.begin(), in_flight_.end(), [](const auto& m) { return m.has_value(); })) settle(move);
      break;
    case Stage::settling:
      check_held(move);
      break;
    case Stage::open:
      if (holding.micro_step <= released_) {
        held_at_[rank].reset();
        break;
      }
      // Ranks that pause by themselves (non-finite values) all do so at the same micro-step.
      target_ = holding.micro_step;
      if (holding.held) check_held(move);
      move.unprompted = move.reached;
      break;
    case Stage::held:
      break;
  }
  return move;
}

void HoldAgreement::settle(Move& move) {
  target_ = 0;
  for (const auto& micro_step : in_flight_) target_ = std::max(target_, *micro_step);
  target_ = stop_at_(target_);
  stage_ = Stage::settling;
  const auto kind = goal_ == Goal::stop ? RankCommandKind::stop_after : RankCommandKind::hold_after;
  move.broadcast.push_back({kind, target_});
  if (goal_ == Goal::hold) check_held(move);
}

void HoldAgreement::check_held(Move& move) {
  // A resumed rank that has not begun answers 0, and pauses before its first micro-step, which may have any number.
  const auto first = held_at_.front();
  if (!first || *first < target_ ||
      !std::all_of(held_at_.begin(), held_at_.end(), [&](const auto& m) { return m == first; }))
    return;
  target_ = *first;
  stage_ = Stage::held;
  move.reached = true;
  if (std::exchange(stops_when_reached_, false)) move.broadcast.push_back({RankCommandKind::stop_after, target_});
}

HoldAgreement::Move HoldAgreement::release() {
  Move move;
  if (stage_ == Stage::open) return move;
  if (stage_ == Stage::settling) released_ = target_;
  stage_ = Stage::open;
  goal_ = Goal::hold;
  to_phase_ = by_phase_ = stops_when_reached_ = false;
  std::fill(held_at_.begin(), held_at_.end(), std::nullopt);
  move.broadcast.push_back({RankCommandKind::proceed, 0});
  return move;
}

void HoldAgreement::leave(std::int64_t micro_step) {
  stage_ = Stage::settling;
  target_ = micro_step;
  to_phase_ = by_phase_ = false;
  std::fill(held_at_.begin(), held_at_.end(), std::nullopt);
}

HoldAgreement::Move HoldAgreement::advance_to(std::int64_t micro_step) {
  if (stage_ != Stage::held) return {};
  leave(micro_step);
  return {.broadcast = {{RankCommandKind::hold_after, micro_step}, {RankCommandKind::proceed, 0}}};
}

HoldAgreement::Move HoldAgreement::advance_in(std::int64_t micro_step) {
  if (stage_ != Stage::held) return {};
  leave(micro_step);
  to_phase_ = true;
  return {.broadcast = {{RankCommandKind::hold_in, micro_step}}};
}

HoldAgreement::Move HoldAgreement::advance_phase() {
  if (stage_ != Stage::held) return {};
  leave(target_);
  to_phase_ = by_phase_ = true;
  return {.broadcast = {{RankCommandKind::step_phase, 0}}};
}

}  // namespace accrue
