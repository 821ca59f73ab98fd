// SPDX-License-Identifier: Apache-2.0
// Everything one rank trains with, built once. The passes of trainer.cpp borrow it; none of them counts on its own:
// where training stands is the window's position, and what has been done is the cursor.
#pragma once

#include <cstdint>
#include <memory>

#include "accrue/checkpoint/checkpoint.h"
#include "accrue/data/data_source.h"
#include "accrue/optim/flat_optimizer.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/run_plan.h"
#include "train/agreement.h"
#include "train/flat_model.h"
#include "train/loss_scaling.h"
#include "train/reporter.h"

namespace accrue {

struct Training {
  const RunOrder& order;
  Communicator& axis;
  RankChannel& channel;
  Reporter report;
  std::unique_ptr<DataSource> data;
  FlatModel model;
  LossScaling scaling;
  DistributedDataParallel reducer;
  std::unique_ptr<FlatOptimizer> optimizer;
  AccumulationWindow window;
  TrainingCursor cursor;
  std::int64_t saved_update = -1;  ///< the update of the newest checkpoint; -1 = none

  /// Collective: the axis (parameters are made equal).
  Training(const RunOrder& run, Communicator& data_axis, RankChannel& rank_channel, std::unique_ptr<DataSource> source);

  const RunPlan& plan() const { return order.plan; }
  const RunSpec& spec() const { return order.plan.spec; }
};

/// What an open window has been given so far; see WindowTally for what its ranks then agree on.
enum class WindowEnd { boundary, run_over, stopped };

struct WindowPass {
  WindowEnd end = WindowEnd::run_over;
  MicroPlan last;  ///< the boundary's micro-step
  WindowTally tally;
};

}  // namespace accrue
