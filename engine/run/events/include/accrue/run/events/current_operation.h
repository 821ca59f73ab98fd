// SPDX-License-Identifier: Apache-2.0
// Current operation of a rank. The training thread stores it cheaply, and the channel's thread puts it into words for a
// heartbeat: "backward of micro-step 3, chunk 1: all_reduce over the tensor ranks".
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "accrue/run/window/pipeline_schedule.h"

namespace accrue {

class CurrentOperation {
 public:
  /// Begins an operation of a window. `micro_step`: of the run, from 1; `chunks`: model parts of this stage.
  void begins(const PipelineOperation& operation, std::int64_t micro_step, std::int64_t chunks);
  /// Leaves the operations of a window.
  void ends() { operation_.store(0, std::memory_order_relaxed); }
  /// The thread waits in a call; names as in CollectiveRecord.
  void waits_in(std::string_view op, std::string_view axis);
  void goes_on() { call_.store(0, std::memory_order_relaxed); }

  /// Empty if no operation is in progress.
  std::string text() const;

 private:
  std::atomic<std::uint64_t> operation_{0};  ///< 0, or action + 1, whether to name the chunk, chunk, peer, micro-step
  std::atomic<std::uint32_t> call_{0};       ///< 0, or op + 1 and axis
};

}  // namespace accrue
