// SPDX-License-Identifier: Apache-2.0
// Runs the micro-batches of one step through the chunks of this rank, in the order of the core's pipeline schedule:
// the same executor that runs the trainer's windows. Thread: training.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/comm/mesh.h"
#include "accrue/megatron/megatron_lm_plugin.h"
#include "accrue/megatron/timers.h"
#include "accrue/megatron/train_step.h"
#include "accrue/run/window/accumulation_window.h"
#include "accrue/run/window/pipeline_schedule.h"
#include "pipeline/window_executor.h"

namespace accrue::megatron {

/// Result of a step on this rank. Only the last stage has the losses.
struct StepSums {
  LossReport report;               ///< of all micro-batches: the mean, or sums [2]
  std::int64_t tokens = 0;         ///< if losses are sums
  std::vector<at::Tensor> logits;  ///< of each micro-batch
  bool finite = true;              ///< of every micro-batch's loss
};

struct StepRunnerOptions {
  ParallelSpec parallel;  ///< decides the order of a pipeline's micro-batches
  bool calculate_per_token_loss = false;
  bool return_logits = false;
  bool compare_batches = false;  ///< of the tensor ranks, because the program makes them
  LossFunction loss;             ///< replaces the step's own; empty: none
};

/// Errors: throws std::invalid_argument for a loss that is no single element or has no graph, and for a report without
/// a name or a value.
void check_loss(const LossOut& out);

class StepRunner {
 public:
  /// All but the options must outlive this.
  StepRunner(const std::vector<std::shared_ptr<ModelChunk>>& chunks, AbstractTrainStep& step, Mesh& mesh,
             Timers& timers, StepRunnerOptions options);
  ~StepRunner();

  /// Adds the gradients of the step's loss times the scale. `division`: divides each micro-batch's loss by a number;
  /// losses that a count divides later are left as sums. Collective: the pipeline and the tensor axis.
  StepSums train(const std::vector<Batch>& micro_batches, const Division& division, double loss_scale = 1.0);
  /// Forward only, without a graph; dropout as the chunks' modes say.
  StepSums evaluate(const std::vector<Batch>& micro_batches);
  /// Returns this tensor rank's logits of the whole model on every stage: [rows, positions, vocabulary / tensor ranks].
  /// `batch`: under the model's own names.
  at::Tensor logits(const Batch& batch);

 private:
  class ChunkPart;
  class TimedLink;
  class Work;
  StepSums run(const std::vector<Batch>& micro_batches, bool backward);

  const std::vector<std::shared_ptr<ModelChunk>>& chunks_;
  AbstractTrainStep& step_;
  Mesh& mesh_;
  Timers& timers_;
  StepRunnerOptions options_;
  std::unique_ptr<TimedLink> link_;
  std::unique_ptr<Work> work_;
  std::vector<std::shared_ptr<ChunkPart>> parts_;
  std::unique_ptr<WindowExecutor> executor_;
};

}  // namespace accrue::megatron
