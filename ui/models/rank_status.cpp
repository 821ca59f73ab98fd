// SPDX-License-Identifier: GPL-3.0-or-later
#include "rank_status.h"

#include <algorithm>
#include <variant>

#include "accrue/run/steps_record.h"

namespace accrue::ui {

RankTracker::RankTracker(const RunPlan& plan) : shape_(plan.window) {
  for (std::int64_t rank = 0; rank < plan.grid.world(); ++rank) {
    RankStatus status;
    status.at = plan.grid.coordinate(rank);
    status.window_size = plan.window.steps;
    ranks_.emplace(rank, status);
  }
}

bool allLevelled(const std::map<std::int64_t, RankStatus>& ranks) {
  return !ranks.empty() && std::ranges::all_of(ranks, [](const auto& entry) { return entry.second.levelled(); });
}

void RankTracker::take(const std::vector<RunEvent>& events) {
  for (const RunEvent& event : events) {
    // Walks begin anew: a rank may have been seen in the next window before the news of its size.
    if (shape_ && take_steps(*shape_, event)) walkers_.clear();
    if (event.rank < 0) continue;
    if (const auto* steps = std::get_if<MicroSteps>(&event.body)) {
      takeMicroSteps(event.rank, *steps);
    } else if (const auto* sync = std::get_if<Sync>(&event.body)) {
      takeSync(event.rank, *sync);
    } else if (const auto* update = std::get_if<Update>(&event.body)) {
      takeUpdate(*update);
    } else if (const auto* beat = std::get_if<Heartbeat>(&event.body)) {
      ranks_[event.rank].phase = beat->phase;
    } else if (const auto* ready = std::get_if<RankReady>(&event.body)) {
      RankStatus& status = ranks_[event.rank];
      status.at = {ready->data, ready->pipeline, ready->tensor};
      status.device = ready->device;
      status.backend = ready->backend;
      status.lost = false;
    } else if (std::holds_alternative<RankFailed>(event.body)) {
      ranks_[event.rank].lost = true;
    }
  }
}

void RankTracker::takeMicroSteps(std::int64_t rank, const MicroSteps& steps) {
  RankStatus& status = ranks_[rank];
  for (std::size_t i = 0; i < steps.micro_step.size(); ++i) {
    status.micro_step = steps.micro_step[i];
    placeInWindow(rank, status);
    const std::int64_t tokens = i < steps.tokens.size() ? steps.tokens[i] : 0;
    if (status.filled <= 1) {
      status.window_tokens = 0;
      status.slots.clear();
    }
    status.window_tokens += tokens;
    fillSlot(status, tokens);
  }
}

void RankTracker::fillSlot(RankStatus& status, std::int64_t tokens) const {
  if (status.filled < 1) return;
  const std::int64_t size = std::max({status.window_size, status.filled, std::int64_t{1}});
  const std::int64_t slot = size <= most_slots ? status.filled - 1 : (status.filled - 1) * most_slots / size;
  // Positions whose events were lost leave empty slots behind.
  if (static_cast<std::int64_t>(status.slots.size()) <= slot) status.slots.resize(static_cast<std::size_t>(slot) + 1);
  PoolSlot& filled = status.slots[static_cast<std::size_t>(slot)];
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
  end.planned = shape_ ? shape_->steps_now() : 0;
  if (last_end_ && last_end_->update + 1 == update.update) end.micro_steps = update.micro_step - last_end_->micro_step;
  if (update.update == 1) end.micro_steps = update.micro_step;
  for (const auto& [rank, walk] : walkers_) {
    if (walk.at.micro_step != update.micro_step) continue;
    end.micro_steps = walk.at.position + 1;
    end.epoch = walk.at.epoch;
    const bool drops = walk.at.epoch_ends && shape_->knobs.tail != EpochTail::pad_repeat;
    if (drops) end.dropped_batches = std::max<std::int64_t>(shape_->batches_per_epoch - walk.at.batch - 1, 0);
  }
  last_end_ = std::move(end);
}

bool RankTracker::drained() const {
  if (!last_end_) return false;
  return std::ranges::all_of(ranks_,
                             [this](const auto& entry) { return entry.second.micro_step <= last_end_->micro_step; });
}

void RankTracker::step(Walker& walk) {
  const auto plan = walk.window.next();
  if (!plan) return;
  // What an open window holds when a new epoch begins was brought by the one before.
  if (plan->position == 0)
    walk.carried = 0;
  else if (plan->epoch != walk.at.epoch)
    walk.carried = plan->position;
  walk.at = *plan;
}

void RankTracker::placeInWindow(std::int64_t rank, RankStatus& status) {
  if (!shape_) return;
  const auto at = walkers_.try_emplace(rank, Walker{AccumulationWindow(*shape_), {}}).first;
  Walker& walk = at->second;
  // Seeking starts from the beginning: only the way back to a checkpoint needs it.
  if (status.micro_step <= walk.window.micro_steps_done()) walk.window.seek(status.micro_step - 1);
  while (walk.window.micro_steps_done() < status.micro_step) {
    const std::int64_t before = walk.window.micro_steps_done();
    step(walk);
    if (walk.window.micro_steps_done() == before) break;
  }
  status.carried = walk.carried;
  status.epoch = walk.at.epoch;
  status.window = walk.at.window + 1;
  status.filled = walk.at.position + 1;
  status.window_size = walk.at.window_size;
}

void RankTracker::takeSync(std::int64_t rank, const Sync& sync) {
  RankStatus& status = ranks_[rank];
  for (std::size_t i = 0;
       i < sync.bytes.size() && i < sync.update.size() && i < sync.micro_step.size() && i < sync.axis.size(); ++i) {
    if (sync.axis[i] != "data") continue;
    if (sync.update[i] != status.last_sync_update) status.last_sync_bytes = 0;
    status.last_sync_update = sync.update[i];
    status.last_sync_bytes += sync.bytes[i];
    // The ranks' agreement on a window gathers a few numbers whether gradients are reduced or not.
    const bool never = shape_ && shape_->knobs.reduce_when == ReduceWhen::never;
    if (i < sync.op.size() && sync.op[i] == "all_reduce" && !never) status.levelled_at = sync.micro_step[i];
  }
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
  for (auto& [rank, status] : ranks)
    if (status.window < now) {  // has not begun it yet
      status.filled = status.window_tokens = status.carried = status.levelled_at = 0;
      status.slots.clear();
    }
  return ranks;
}

}  // namespace accrue::ui
