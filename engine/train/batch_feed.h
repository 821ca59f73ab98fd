// SPDX-License-Identifier: Apache-2.0
// Where the batches of the micro-steps come from. Data whose length is known are asked by position. A stream is read
// on: before a window begins its batches, and one more, are fetched ahead, and the ranks agree on how many there are,
// so that all of them know the window's true size and the end of the epoch before data flows.
#pragma once

#include <cstdint>
#include <deque>

#include "accrue/comm/communicator.h"
#include "accrue/data/data_source.h"
#include "accrue/run/run_plan.h"

namespace accrue {

class BatchFeed {
 public:
  /// All must outlive this.
  BatchFeed(const RunPlan& plan, DataSource& data, Communicator& axis) : plan_(plan), data_(data), axis_(axis) {}

  /// Before a micro-step is planned: looks ahead where the data are a stream and says what was found. Collective there:
  /// the axis, at the same micro-steps on all ranks.
  void look_ahead(AccumulationWindow& window);
  /// The batch of a micro-step; empty where this rank has none.
  Batch batch(const MicroPlan& micro);
  /// After an epoch's last batch that is trained on: fetches the rest and drops it, where K2 is drop_drain.
  void drain(const MicroPlan& last);

 private:
  /// N of the window that follows the one of which `rest` micro-steps are to come, with the first of them just taken.
  static std::int64_t steps_after(AccumulationWindow window, std::int64_t rest);
  /// Reads on up to `wanted` batches; how many there are on the rank that has most.
  std::int64_t read_ahead(const MicroPlan& coming, std::int64_t wanted);
  Batch fetch(std::int64_t epoch, std::int64_t batch);
  /// Drops what was read ahead and has been passed.
  void forget_before(std::int64_t epoch, std::int64_t batch);

  const RunPlan& plan_;
  DataSource& data_;
  Communicator& axis_;
  std::deque<Batch> ahead_;
  std::int64_t first_ = 0;   ///< which batch of the epoch is the first of them
  std::int64_t epoch_ = -1;  ///< of what has been read ahead
  bool at_end_ = false;
};

}  // namespace accrue
