// SPDX-License-Identifier: Apache-2.0
// Two lists are kept, because a loop makes other calls on a boundary (it clips only there). The current list becomes
// the last of its kind when the next micro-step begins: what a loop does after its scope still belongs to it.
#include "accrue/accumulation/accelerate/micro_step_script.h"

#include <utility>

namespace accrue::accelerate {
namespace {

/// No micro-step has as many calls: the loop has gone on without accumulate().
constexpr std::size_t most_calls = 4096;

}  // namespace

void MicroStepScript::begin(bool boundary) {
  if (!enabled_ || playing_) return;
  if (recording_ && !now_.empty()) last_[boundary_] = std::move(now_);
  now_.clear();
  recording_ = true;
  boundary_ = boundary;
}

void MicroStepScript::note(Call call) {
  if (!enabled_ || !recording_ || playing_) return;
  recording_ = now_.size() < most_calls;
  if (recording_)
    now_.push_back(std::move(call));
  else
    now_.clear();
}

bool MicroStepScript::play(bool boundary) {
  if (recording_ && !now_.empty()) last_[boundary_] = std::exchange(now_, {});
  recording_ = false;
  const std::vector<Call>& calls = last_[boundary].empty() ? last_[!boundary] : last_[boundary];
  if (calls.empty()) return false;
  playing_ = true;
  for (const Call& call : calls) call();
  playing_ = false;
  return true;
}

}  // namespace accrue::accelerate
