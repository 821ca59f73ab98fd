// SPDX-License-Identifier: GPL-3.0-or-later
#include "rank_status.h"

#include <algorithm>
#include <variant>

namespace accrue::ui {

RankTracker::RankTracker(const RunPlan& plan) : shape_(plan.window) {
  for (std::int64_t rank = 0; rank < plan.grid.world(); ++rank) {
    RankStatus status;
    status.at = plan.grid.coordinate(rank);
    status.window_size = plan.window.steps;
    ranks_.emplace(rank, status);
  }
}

void RankTracker::take(const std::vector<RunEvent>& events) {
  for (const RunEvent& event : events) {
    if (event.rank < 0) continue;
    if (const auto* steps = std::get_if<MicroSteps>(&event.body)) {
      takeMicroSteps(event.rank, *steps);
    } else if (const auto* sync = std::get_if<Sync>(&event.body)) {
      takeSync(event.rank, *sync);
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
    if (status.filled <= 1) status.window_tokens = 0;
    if (i < steps.tokens.size()) status.window_tokens += steps.tokens[i];
  }
}

void RankTracker::placeInWindow(std::int64_t rank, RankStatus& status) {
  if (!shape_) return;
  const auto at = walkers_.try_emplace(rank, Walker{AccumulationWindow(*shape_), {}}).first;
  Walker& walk = at->second;
  // Seeking starts from the beginning: only the way back to a checkpoint needs it.
  if (status.micro_step <= walk.window.micro_steps_done()) walk.window.seek(status.micro_step - 1);
  while (walk.window.micro_steps_done() + 1 < status.micro_step && walk.window.next()) {
  }
  if (const auto plan = walk.window.next()) walk.at = *plan;
  status.window = walk.at.window + 1;
  status.filled = walk.at.position + 1;
  status.window_size = walk.at.window_size;
}

void RankTracker::takeSync(std::int64_t rank, const Sync& sync) {
  RankStatus& status = ranks_[rank];
  for (std::size_t i = 0; i < sync.bytes.size() && i < sync.update.size() && i < sync.axis.size(); ++i) {
    if (sync.axis[i] != "data") continue;
    if (sync.update[i] != status.last_sync_update) status.last_sync_bytes = 0;
    status.last_sync_update = sync.update[i];
    status.last_sync_bytes += sync.bytes[i];
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
    if (status.window < now) status.filled = status.window_tokens = 0;  // has not begun it yet
  return ranks;
}

}  // namespace accrue::ui
