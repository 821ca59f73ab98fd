// SPDX-License-Identifier: Apache-2.0
#include "progress_watch.h"

#include <algorithm>
#include <tuple>

namespace accrue {
namespace {

using namespace std::chrono_literals;

constexpr ProgressWatch::Clock::duration longest_silence = 10s;   ///< for a running process, on any machine
constexpr ProgressWatch::Clock::duration missed_heartbeats = 1s;  ///< ten of them

bool writes(const Heartbeat& heartbeat) {
  return heartbeat.phase == "checkpoint" || heartbeat.phase == "finish";
}

/// Phases without a time limit: a slow disk is not a hang.
bool may_take_long(const Heartbeat& heartbeat) {
  return writes(heartbeat) || heartbeat.phase == "paused";
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

void ProgressWatch::leave_out(Clock::duration gap, Clock::time_point now) {
  for (auto& rank : ranks_) {
    rank.sign_of_life = std::min(now, rank.sign_of_life + gap);
    rank.progress = std::min(now, rank.progress + gap);
  }
}

std::vector<std::size_t> ProgressWatch::living(const std::function<bool(const Rank&)>& which) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (!ranks_[i].gone && which(ranks_[i])) found.push_back(i);
  return found;
}

std::vector<std::size_t> ProgressWatch::silent(Clock::time_point now, Clock::duration limit) const {
  return living([&](const Rank& rank) { return now - rank.sign_of_life > std::min(limit, longest_silence); });
}

std::optional<std::size_t> ProgressWatch::stopped(Clock::time_point now, Clock::duration limit) const {
  const auto quiet = living([&](const Rank& rank) { return now - rank.sign_of_life > limit; });
  const auto heard = living([&](const Rank& rank) { return now - rank.sign_of_life <= missed_heartbeats; });
  if (quiet.empty() || heard.empty()) return std::nullopt;
  return quiet.front();
}

std::vector<std::size_t> ProgressWatch::motionless(Clock::time_point now, Clock::duration limit) const {
  return living([&](const Rank& rank) { return now - rank.progress > limit; });
}

std::vector<std::size_t> ProgressWatch::writing(Clock::time_point now, Clock::duration limit) const {
  return living([&](const Rank& rank) { return writes(rank.heartbeat) && now - rank.progress > limit; });
}

std::vector<std::size_t> ProgressWatch::stalled(Clock::time_point now, Clock::duration limit) const {
  std::vector<std::size_t> blamed = silent(now, limit);
  if (!blamed.empty()) return blamed;
  const auto is_behind = [this](const Rank& rank) {
    return std::none_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return !other.gone && position_of(other.heartbeat) < position_of(rank.heartbeat);
    });
  };
  blamed = living([&](const Rank& rank) {
    return now - rank.progress > limit && !may_take_long(rank.heartbeat) && is_behind(rank);
  });
  // At equal positions, a rank in a reduction waits for the others.
  const auto waits = [this](std::size_t i) { return ranks_[i].heartbeat.phase == "reduce"; };
  if (!std::all_of(blamed.begin(), blamed.end(), waits)) std::erase_if(blamed, waits);
  return blamed;
}

std::optional<std::size_t> ProgressWatch::awaited(Clock::time_point now) const {
  auto candidates = living([&](const Rank& rank) { return now - rank.sign_of_life > missed_heartbeats; });
  if (candidates.empty())
    candidates = living([&](const Rank& rank) {
      return std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
        return other.gone && position_of(rank.heartbeat) < position_of(other.heartbeat);
      });
    });
  if (candidates.empty()) return std::nullopt;
  return *std::min_element(candidates.begin(), candidates.end(),
                           [this](std::size_t a, std::size_t b) { return ranks_[a].progress < ranks_[b].progress; });
}

}  // namespace accrue
