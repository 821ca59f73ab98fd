// SPDX-License-Identifier: Apache-2.0
// Source of the micro-steps' batches: the data are read by position.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/data/data_source.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

class BatchFeed {
 public:
  /// Both must outlive this.
  BatchFeed(const RunPlan& plan, DataSource& data, std::int64_t rank) : plan_(plan), data_(data), rank_(rank) {}

  /// Returns the batch of a micro-step; empty if this rank has none.
  Batch batch(const MicroPlan& micro) { return fetch(micro.epoch, micro.batch); }
  /// Returns its samples; empty in the same case.
  std::vector<std::int64_t> samples(std::int64_t epoch, std::int64_t batch);
  /// Call after an epoch's last trained batch: fetches and drops the rest if fetches_dropped().
  void drain(const MicroPlan& last);

 private:
  Batch fetch(std::int64_t epoch, std::int64_t batch);

  const RunPlan& plan_;
  DataSource& data_;
  std::int64_t rank_;
  std::optional<CyclicSampler> cyclic_;  ///< keeps the order of an epoch
};

}  // namespace accrue
