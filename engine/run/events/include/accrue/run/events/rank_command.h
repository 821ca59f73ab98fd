// SPDX-License-Identifier: Apache-2.0
// Commands from the supervisor to a rank: JSON lines on the socket that carries events up. Commands at a micro-step
// work by agreement. On hold, every rank answers Holding{m} with its current micro-step; the supervisor then sends
// hold_after{max m} to all. So every rank pauses after the same micro-step, and no collective is left half done.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

enum class RankCommandKind {
  hold,                 ///< answer with the current micro-step, and stop after it
  hold_after,           ///< pause after micro_step (never before one already agreed)
  proceed,              ///< run on
  stop_after,           ///< drop the open window and end after micro_step
  checkpoint,           ///< at the next boundary (travels with the boundary's reduction)
  checkpoint_and_stop,  ///< likewise, then end
  set_steps,            ///< likewise: N becomes `steps` for the windows after it
  hold_in,              ///< while paused: pause after the backward of micro_step, before its gradients are reduced
  step_phase,           ///< while paused: continue to the end of the next phase
  end_now,              ///< to a rank that another launcher started: end without saving
};

struct RankCommand {
  RankCommandKind kind = RankCommandKind::hold;
  std::int64_t micro_step = 0;  ///< hold_after, stop_after, hold_in
  std::int64_t steps = 0;       ///< set_steps
  bool operator==(const RankCommand&) const = default;
};

std::string encode_command(const RankCommand& command);
Result<RankCommand> decode_command(std::string_view line);

}  // namespace accrue
