// SPDX-License-Identifier: Apache-2.0
// Everything one rank trains with, built once. The passes of trainer.cpp borrow it; none of them counts on its own:
// where training stands is the window's position, and what has been done is the cursor.
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
#include "accrue/run/run_order.h"
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
#include "update/update_shard.h"

namespace accrue {

/// How much the whole window holds, where a normaliser must know it before the first micro-step.
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
  std::optional<UpdateShard> shard;  ///< ZeRO: what this rank updates, if not everything
  std::unique_ptr<FlatOptimizer> optimizer;
  /// What updates go to, where that is not the flat parameters: float32 copies of half-precision parameters; the packed
  /// copy of this rank's shard.
  at::Tensor masters;
  AccumulationDriver driver;
  AccumulationWindow& window;  ///< the driver's
  BatchFeed feed;
  MessageLink link;
  WindowExecutor executor;
  DynamicScale loss_scale;
  TrainingCursor cursor;
  OpenWindow open;                      ///< of a window that a checkpoint was taken inside of
  std::optional<CheckpointMark> saved;  ///< the newest checkpoint
  std::int64_t saved_micro_step = 0;    ///< where it, or the run, began

  /// Collective: the world (parameters are made equal).
  Training(const RunOrder& run, const Mesh& ranks, RankChannel& rank_channel, at::Device computes_on, RunHooks named,
           std::unique_ptr<DataSource> source);

  /// Where the dynamic loss scale stands, into a cursor.
  void note_scale(TrainingCursor& at) const {
    at.loss_scale = loss_scale.scale;
    at.scale_growth = loss_scale.growth;
    at.scale_overflows = loss_scale.overflows;
  }
  /// Before the parameters are read as a whole: an update's may still travel (overlap_param_gather).
  void await_parameters() {
    if (shard) shard->await_all();
  }
  /// Whether the loss is known as two parts: a plug-in library's is one number.
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
  std::vector<MicroPlan> micro_steps;  ///< of the window, for a check of its gradient; not those before a resume
};

}  // namespace accrue
