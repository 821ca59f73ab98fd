// SPDX-License-Identifier: Apache-2.0
// MicroStepScript: what the caller's loop asked of the Accelerator in its last micro-step on and off a boundary, in
// order. A rank that has run out of batches plays it, without a gradient of its own, for as long as the others go on:
// it makes the same reductions, clips, steps and schedules as they do, so nobody waits and no group mixes with another.
// Source: the role of torch.distributed.algorithms.Join's shadowing, extended to whole groups.
#pragma once

#include <functional>
#include <vector>

namespace accrue::accelerate {

class MicroStepScript {
 public:
  using Call = std::function<void()>;

  /// False: nothing is kept, as where a rank is alone.
  explicit MicroStepScript(bool enabled) : enabled_(enabled) {}

  /// A micro-step begins; `boundary` says of which kind it is.
  void begin(bool boundary);
  /// The loop made a call; `call` makes it again for a rank without a batch.
  void note(Call call);
  /// Makes the calls of the last micro-step of this kind, else of the other kind. False: none was ever recorded.
  bool play(bool boundary);
  bool playing() const { return playing_; }

 private:
  bool enabled_;
  bool recording_ = false;
  bool playing_ = false;
  bool boundary_ = false;
  std::vector<Call> now_;
  std::vector<Call> last_[2];  ///< off a boundary, on one
};

}  // namespace accrue::accelerate
