// SPDX-License-Identifier: Apache-2.0
// Deliberate faults: the bugs of the gallery that are more than a wrong knob, the replayed defects in the engine, and
// injected overflows. The trainer's passes query them at the affected places; a run without faults gets the plan's own
// answers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

class Faults {
 public:
  Faults(const RunPlan& plan, std::int64_t rank) : plan_(plan), rank_(rank) {}

  /// Returns the trained model: batch_norm adds statistics of a micro-batch to it.
  static ModelSpec model(const RunSpec& spec);

  /// Whether gradients are reduced after this micro-step's backward.
  bool reduces(const MicroPlan& micro) const;
  /// Whether gradients are zeroed before it.
  bool clears_before(const MicroPlan& micro) const;
  /// Whether its loss becomes infinite.
  bool overflows(const MicroPlan& micro) const;
  /// Whether it is skipped, while everything that counts it stays the same.
  bool leaves_out(const MicroPlan& micro) const;

  /// Returns the gradients that a reduction is about to miss, to be restored after it; undefined if it misses none.
  at::Tensor keep_unreduced(const DistributedDataParallel& reducer) const;
  void put_back(const DistributedDataParallel& reducer, const at::Tensor& kept) const;

 private:
  FlatRange unreduced(const FlatLayout& layout) const;

  const RunPlan& plan_;
  std::int64_t rank_;
};

}  // namespace accrue
