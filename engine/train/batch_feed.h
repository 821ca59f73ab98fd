// SPDX-License-Identifier: Apache-2.0
// Where the batches of the micro-steps come from: the data are asked by position.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/data/data_source.h"
#include "accrue/run/run_plan.h"

namespace accrue {

class BatchFeed {
 public:
  /// Both must outlive this.
  BatchFeed(const RunPlan& plan, DataSource& data, std::int64_t rank) : plan_(plan), data_(data), rank_(rank) {}

  /// The batch of a micro-step; empty where this rank has none.
  Batch batch(const MicroPlan& micro) { return fetch(micro.epoch, micro.batch); }
  /// Its samples, likewise.
  std::vector<std::int64_t> samples(std::int64_t epoch, std::int64_t batch);
  /// After an epoch's last batch that is trained on: fetches the rest and drops it, where fetches_dropped().
  void drain(const MicroPlan& last);

 private:
  Batch fetch(std::int64_t epoch, std::int64_t batch);

  const RunPlan& plan_;
  DataSource& data_;
  std::int64_t rank_;
  std::optional<CyclicSampler> cyclic_;  ///< keeps the order of an epoch
};

}  // namespace accrue
