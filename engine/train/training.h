// SPDX-License-Identifier: Apache-2.0
// Everything that one rank trains with, built once. The passes of trainer.cpp borrow it, and none of them counts: the
// window holds the position, and the cursor holds what has been done.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/accumulation/accumulation_driver.h"
#include "accrue/checkpoint/checkpoint.h"
#include "accrue/data/data_source.h"
#include "accrue/optim/flat_optimizer.h"
#include "accrue/parallel/distributed_data_parallel.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/update/dynamic_scale.h"
#include "pipeline/message_link.h"
#include "pipeline/window_executor.h"
#include "train/agreement.h"
#include "train/batch_feed.h"
#include "train/compute_clock.h"
#include "train/faults.h"
#include "train/flat_model.h"
#include "train/loss_scaling.h"
#include "train/reporter.h"
#include "train/run_hooks.h"
#include "train/scalar_log.h"
#include "update/masters.h"

namespace accrue {

/// Contents of the whole window, if a normaliser needs them before the first micro-step.
struct OpenWindow {
  WindowTally tally;
  WindowCounts counted;
};

struct Training {
  const RunOrder& order;
  const Mesh& mesh;
  RankChannel& channel;
  RunHooks hooks;
  Reporter report;
  ScalarLog scalars;
  at::Device device;
  ComputeClock clock;
  std::unique_ptr<DataSource> data;  ///< batches on the device
  Faults faults;
  TensorAxis tensor;
  FlatModel model;
  LossScaling scaling;
  DistributedDataParallel reducer;
  std::optional<UpdateShard> shard;  ///< ZeRO: the part that this rank updates
  std::unique_ptr<FlatOptimizer> optimizer;
  Masters masters;
  AccumulationDriver driver;
  AccumulationWindow& window;  ///< the driver's
  BatchFeed feed;
  MessageLink link;
  WindowExecutor executor;
  DynamicScale loss_scale;
  TrainingCursor cursor;
  OpenWindow open;                      ///< of a window inside which a checkpoint was taken
  std::optional<CheckpointMark> saved;  ///< the newest checkpoint
  std::int64_t saved_micro_step = 0;    ///< its micro-step, or the start of the run

  /// Collective: the world (parameters are made equal).
  Training(const RunOrder& run, const Mesh& ranks, RankChannel& rank_channel, at::Device computes_on, RunHooks named,
           std::unique_ptr<DataSource> source);

  /// Copies the dynamic loss scale into a cursor.
  void note_scale(TrainingCursor& at) const {
    at.loss_scale = loss_scale.scale;
    at.scale_growth = loss_scale.growth;
    at.scale_overflows = loss_scale.overflows;
  }
  /// Call before reading the parameters as a whole: an update's gathering may still be in progress
  /// (overlap_param_gather).
  void await_parameters() {
    if (shard) shard->await_all();
  }
  /// Whether the loss is known in two parts; a plug-in library's is one number.
  bool splits_loss() const { return has_second_loss(spec().model) && !hooks.any(); }
  bool half() const { return at::isReducedFloatingType(model.dtype()); }
  const RunPlan& plan() const { return order.plan; }
  const RunSpec& spec() const { return order.plan.spec; }
};

enum class WindowEnd { boundary, run_over, stopped };

struct WindowPass {
  WindowEnd end = WindowEnd::run_over;
  MicroPlan last;  ///< the boundary's micro-step
  WindowTally tally;
  std::vector<MicroPlan> micro_steps;  ///< of the window, for a check of its gradient; without those before a resume
};

}  // namespace accrue
