// SPDX-License-Identifier: Apache-2.0
// What goes wrong on purpose: the bugs of the gallery that are not merely a wrong knob, the replayed defects that show
// in the engine, and overflows that are injected. The passes of the trainer ask at the places where such a thing can
// happen; a run without any gets the plan's own answers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/run_plan.h"

namespace accrue {

class Faults {
 public:
  Faults(const RunPlan& plan, std::int64_t rank) : plan_(plan), rank_(rank) {}

  /// The model that is trained: batch_norm puts statistics of a micro-batch into it.
  static ModelSpec model(const RunSpec& spec);

  /// Gradients are reduced after this micro-step's backward.
  bool reduces(const MicroPlan& micro) const;
  /// Gradients are zeroed before it.
  bool clears_before(const MicroPlan& micro) const;
  /// Its loss becomes infinite.
  bool overflows(const MicroPlan& micro) const;
  /// It is left out, and everything that counts it stays as it is.
  bool leaves_out(const MicroPlan& micro) const;

  /// The gradients that a reduction is about to miss, to be put back after it; undefined where it misses none.
  at::Tensor keep_unreduced(const DistributedDataParallel& reducer) const;
  void put_back(const DistributedDataParallel& reducer, const at::Tensor& kept) const;

 private:
  FlatRange unreduced(const FlatLayout& layout) const;

  const RunPlan& plan_;
  std::int64_t rank_;
};

}  // namespace accrue
