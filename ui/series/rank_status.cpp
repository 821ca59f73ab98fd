// SPDX-License-Identifier: GPL-3.0-or-later
#include "rank_status.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

namespace accrue::ui {

namespace {

/// Index of the slot of the newest micro-step of its window, which has one.
std::size_t slotOf(const RankStatus& status) {
  constexpr std::int64_t most = RankTracker::most_slots;
  const std::int64_t size = std::max({status.window_size, status.filled, std::int64_t{1}});
  return static_cast<std::size_t>(size <= most ? status.filled - 1 : (status.filled - 1) * most / size);
}

}  // namespace

RankTracker::RankTracker(const RunPlan& plan) : reduces_(plan.window.knobs.reduce_when != ReduceWhen::never) {
  for (std::int64_t rank = 0; rank < plan.grid.world(); ++rank) {
    RankStatus status;
    status.at = plan.grid.coordinate(rank);
    status.window_size = plan.window.steps;
    ranks_.emplace(rank, status);
  }
  placeRanks();
}

void RankTracker::placeRanks() {
  std::int64_t last = 0;
  for (const auto& [rank, status] : ranks_) last = std::max(last, status.at.pipeline);
  for (auto& [rank, status] : ranks_) status.has_loss = status.at.pipeline == last && status.at.tensor == 0;
}

bool allReduced(const std::map<std::int64_t, RankStatus>& ranks) {
  return !ranks.empty() && std::ranges::all_of(ranks, [](const auto& entry) { return entry.second.isReduced(); });
}

void RankTracker::take(const std::vector<RunEvent>& events) {
  for (const RunEvent& event : events) {
    if (event.rank < 0) continue;
    if (const auto* steps = std::get_if<MicroSteps>(&event.body)) {
      takeMicroSteps(event.rank, *steps);
    } else if (const auto* sync = std::get_if<Sync>(&event.body)) {
      takeSync(event.rank, *sync);
    } else if (const auto* update = std::get_if<Update>(&event.body)) {
      takeUpdate(*update);
    } else if (const auto* held = std::get_if<Held>(&event.body)) {
      takeHeld(event.rank, *held);
    } else if (const auto* beat = std::get_if<Heartbeat>(&event.body)) {
      ranks_[event.rank].phase = beat->phase;
    } else if (const auto* ready = std::get_if<RankReady>(&event.body)) {
      RankStatus& status = ranks_[event.rank];
      status.at = {ready->data, ready->pipeline, ready->tensor};
      placeRanks();
      status.device = ready->device;
      status.backend = ready->backend;
      status.lost = false;
    } else if (std::holds_alternative<RankFailed>(event.body)) {
      ranks_[event.rank].lost = true;
    }
  }
}

void RankTracker::takeMicroSteps(std::int64_t rank, const MicroSteps& steps) {
  takeMicroSteps(ranks_[rank], steps);
  const std::int64_t replica = ranks_[rank].at.data;
  for (auto& [other, status] : ranks_)
    if (!status.has_loss && status.at.data == replica && other != rank) takeMicroSteps(status, steps);
}

void RankTracker::takeMicroSteps(RankStatus& status, const MicroSteps& steps) const {
  for (std::size_t i = 0; i < steps.micro_step.size(); ++i) {
    status.micro_step = steps.micro_step[i];
    if (status.window != steps.update[i] || steps.position[i] <= 1) {
      status.window_tokens = 0;
      status.slots.clear();
    }
    status.window = steps.update[i];
    status.filled = steps.position[i];
    status.window_size = steps.size[i];
    status.epoch = steps.epoch[i];
    // The window has more micro-steps than the epoch so far: the rest came from the previous one.
    status.carried = std::max<std::int64_t>(steps.position[i] - (steps.batch[i] + 1), 0);
    status.window_tokens += steps.tokens[i];
    status.sum_norm = status.factor = status.clip = 0.0;
    fillSlot(status, steps.tokens[i]);
  }
}

void RankTracker::fillSlot(RankStatus& status, std::int64_t tokens) const {
  if (status.filled < 1) return;
  const std::size_t slot = slotOf(status);
  // Positions whose events were lost leave empty slots.
  if (status.slots.size() <= slot) status.slots.resize(slot + 1);
  PoolSlot& filled = status.slots[slot];
  filled.tokens += tokens;
  ++filled.micro_steps;
}

void RankTracker::takeUpdate(const Update& update) {
  WindowEnd end;
  end.update = update.update;
  end.micro_step = update.micro_step;
  end.outcome = update.outcome;
  end.reason = update.reason;
  end.grad_norm = update.grad_norm;
  end.planned = update.steps;
  end.dropped_batches = update.dropped_batches;
  for (const auto& [rank, status] : ranks_) {
    if (status.micro_step != update.micro_step) continue;
    end.micro_steps = status.filled;
    end.epoch = status.epoch;
  }
  // The micro-steps may be reported after the update.
  if (end.micro_steps == 0 && end.reason == "full") end.micro_steps = end.planned;
  last_end_ = std::move(end);
}

bool RankTracker::drained() const {
  if (!last_end_) return false;
  return std::ranges::all_of(ranks_, [this](const auto& entry) {
    return entry.second.micro_step <= last_end_->micro_step && entry.second.window <= last_end_->update;
  });
}

void RankTracker::takeSync(std::int64_t rank, const Sync& sync) {
  RankStatus& status = ranks_[rank];
  for (std::size_t i = 0;
       i < sync.bytes.size() && i < sync.update.size() && i < sync.micro_step.size() && i < sync.axis.size(); ++i) {
    if (!reduces_ || !reduces_gradients(sync.purpose[i], sync.axis[i], sync.op[i])) continue;
    if (sync.update[i] != status.last_sync_update) status.last_sync_bytes = 0;
    status.last_sync_update = sync.update[i];
    status.last_sync_bytes += sync.bytes[i];
    status.reduced_at = sync.micro_step[i];
  }
}

void RankTracker::takeHeld(std::int64_t rank, const Held& held) {
  RankStatus& status = ranks_[rank];
  // Inside the first micro-step of a window, which no event has reported yet.
  if (held.phase != StepPhase::none && status.window > 0 && held.update > status.window && held.position == 1) {
    status.window = held.update;
    status.window_size = held.size;
    status.filled = status.window_tokens = status.carried = status.reduced_at = 0;
    status.slots.clear();
  }
  if (held.phase == StepPhase::unscale && std::isfinite(held.factor)) status.factor = std::abs(held.factor);
  if (held.phase == StepPhase::clip && std::isfinite(held.clip)) status.clip = held.clip;
  if (held.phase < StepPhase::unscale) status.factor = status.clip = 0.0;
  // From clip on the gradients may already have been scaled.
  if (held.phase <= StepPhase::unscale || held.phase == StepPhase::zero) status.sum_norm = held.gradient_norm;
  const bool in_slots = held.phase == StepPhase::none || held.phase == StepPhase::backward;
  if (!in_slots || held.update != status.window || held.position < 1 || status.window_size > most_slots) return;
  if (held.position == static_cast<std::int64_t>(status.slots.size())) status.slots.back().norm = held.gradient_norm;
}

std::string RankTracker::backend() const {
  for (const auto& [rank, status] : ranks_)
    if (!status.backend.empty()) return status.backend;
  return {};
}

std::int64_t RankTracker::window() const {
  std::int64_t window = 0;
  for (const auto& [rank, status] : ranks_) window = std::max(window, status.window);
  return window;
}

std::map<std::int64_t, RankStatus> RankTracker::inWindow() const {
  const std::int64_t now = window();
  std::map<std::int64_t, RankStatus> ranks = ranks_;
  for (auto& [rank, status] : ranks) {
    const bool ended = last_end_ && last_end_->update == now && status.window == now && !status.lost;
    if (ended && status.micro_step < last_end_->micro_step)
      status.filled = std::max(status.filled, last_end_->micro_steps);
    if (status.window < now) {  // has not begun it yet
      status.filled = status.window_tokens = status.carried = status.reduced_at = 0;
      status.slots.clear();
    }
  }
  return ranks;
}

std::map<std::int64_t, RankStatus> RankTracker::atOneMoment() const {
  std::map<std::int64_t, RankStatus> ranks = inWindow();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& [rank, status] : ranks)
    if (!status.lost) least = std::min(least, status.filled);
  for (auto& [rank, status] : ranks) {
    if (status.filled <= least) continue;
    status.micro_step -= status.filled - least;
    status.filled = least;
    const auto slots = least == 0 ? std::size_t{0} : slotOf(status) + 1;
    if (status.slots.size() > slots) status.slots.resize(slots);
    status.window_tokens = 0;
    for (const PoolSlot& slot : status.slots) status.window_tokens += slot.tokens;
    status.sum_norm = status.factor = status.clip = 0.0;
  }
  return ranks;
}

}  // namespace accrue::ui
