// SPDX-License-Identifier: Apache-2.0
#include "engine_host_liveness.h"

#include <algorithm>
#include <tuple>

namespace accrue {
namespace {

/// Phases that take as long as they take: a slow disk is not a hang.
bool may_take_long(const Heartbeat& heartbeat) {
  return heartbeat.phase == "checkpoint" || heartbeat.phase == "finish" || heartbeat.phase == "paused";
}

auto position_of(const Heartbeat& heartbeat) {
  return std::make_tuple(heartbeat.update, heartbeat.micro_step, heartbeat.collective);
}

}  // namespace

ProgressWatch::ProgressWatch(std::size_t ranks, Clock::time_point now) : ranks_(ranks) {
  restart(now);
}

void ProgressWatch::heard(std::size_t rank, const Heartbeat& heartbeat, Clock::time_point now) {
  auto& entry = ranks_[rank];
  entry.sign_of_life = now;
  if (!(entry.heartbeat == heartbeat)) entry.progress = now;
  entry.heartbeat = heartbeat;
}

void ProgressWatch::worked(std::size_t rank, Clock::time_point now) {
  ranks_[rank].sign_of_life = now;
  ranks_[rank].progress = now;
}

void ProgressWatch::restart(Clock::time_point now) {
  for (auto& rank : ranks_) {
    rank.sign_of_life = now;
    rank.progress = now;
  }
}

std::vector<std::size_t> ProgressWatch::stalled(Clock::time_point now, Clock::duration limit) const {
  std::vector<std::size_t> still;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (!ranks_[i].gone && now - ranks_[i].progress > limit) still.push_back(i);
  std::vector<std::size_t> blamed;
  for (const auto i : still)
    if (now - ranks_[i].sign_of_life > limit) blamed.push_back(i);
  if (!blamed.empty()) return blamed;

  std::erase_if(still, [this](std::size_t i) { return may_take_long(ranks_[i].heartbeat); });
  for (const auto i : still) {
    const bool behind = std::none_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return !other.gone && position_of(other.heartbeat) < position_of(ranks_[i].heartbeat);
    });
    if (behind) blamed.push_back(i);
  }
  // Equal positions: who waits in a reduction waits for the others.
  const auto waits = [this](std::size_t i) { return ranks_[i].heartbeat.phase == "reduce"; };
  if (!std::all_of(blamed.begin(), blamed.end(), waits)) std::erase_if(blamed, waits);
  return blamed;
}

}  // namespace accrue
