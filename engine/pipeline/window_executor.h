// SPDX-License-Identifier: Apache-2.0
// Executor of one pipeline stage's operations of a window (pipeline_schedule.h): forward and backward of the stage's
// model parts, and transfers to and from other stages. A WindowWork supplies the rest (batches, weights of the losses,
// reduction, reports). So training without a pipeline uses the same executor with the list of one stage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/models/model_part.h"
#include "accrue/run/window/pipeline_schedule.h"
#include "accrue/run/window/pipeline_threads.h"

namespace accrue {

/// Link that carries tensors between stages. Each side calls it in the order of its list, so a link whose send() waits
/// for the receive cannot deadlock.
class StageLink {
 public:
  virtual ~StageLink() = default;
  /// Sends a tensor; `operation` says what it is and who receives it. The tensor may be read until finish() has
  /// returned.
  virtual void send(const PipelineOperation& operation, const at::Tensor& tensor) = 0;
  /// Receives the other stage's tensor into `tensor`.
  virtual void receive(const PipelineOperation& operation, at::Tensor& tensor) = 0;
  /// Called before a computation: pending sends need not wait for its end.
  virtual void push() {}
  /// Compares the lists that all stages are about to run. Throws std::invalid_argument on every stage if they differ.
  /// Collective: the stages.
  virtual void compare(const PipelineShape& /*shape*/,
                       const std::vector<std::vector<PipelineOperation>>& /*by_stage*/) {}
  /// Called at the end of a list: returns when all sends have completed.
  virtual void finish() {}
};

/// Callbacks for the operations of a window. Micro-steps count from 0 in the list.
class WindowWork {
 public:
  virtual ~WindowWork() = default;
  /// Called before a micro-step's first operation on this stage. Returns false to end the list here.
  virtual bool begin(std::int64_t micro_step) = 0;
  /// Returns its batch, valid up to its last backward on this stage. Nothing is computed for an empty one.
  virtual const Batch& batch(std::int64_t micro_step) = 0;
  /// Called before a forward or backward.
  virtual void starts(const PipelineOperation& operation) = 0;
  /// Called before a transfer, or the wait for one.
  virtual void transfers(const PipelineOperation& /*operation*/) {}
  /// Returns the factor of the loss before its backward. On the last part.
  virtual double weigh(std::int64_t micro_step, LossSum& loss) = 0;
  /// Called after it was started; a device may still be computing it.
  virtual void computed(const PipelineOperation& operation) = 0;
  /// Called after the backward of a micro-step on a chunk, or when it is skipped.
  virtual void finished(const PipelineOperation& operation) = 0;
};

class WindowExecutor {
 public:
  /// `parts`: this stage's, by chunk. `link` is required with several stages. Both must outlive this.
  WindowExecutor(std::vector<ModelPart*> parts, std::int64_t stages = 1, std::int64_t stage = 0,
                 StageLink* link = nullptr);

  /// Declares that all stages share this host: in lists requested from now on, computations use the threads of idle
  /// stages (pipeline_threads.h) for tasks that support it (models/lent_threads.h).
  void share_host(const StageHost& host) { host_ = host; }
  /// Returns the operations of this stage in a window of that shape. Throws std::invalid_argument if the schedule does
  /// not support the shape, or if the stages request different ones. Collective over the stages, if the shape has
  /// changed.
  const std::vector<PipelineOperation>& operations(const PipelineShape& shape);
  /// Runs them; ends early if the work does. Collective over the stages.
  void run(const std::vector<PipelineOperation>& operations, WindowWork& work);

  /// Whether the memory that forwards keep for their backwards is still being counted.
  bool counts_kept() const { return counts_kept_; }
  void stop_counting_kept() { counts_kept_ = false; }
  /// Restarts the count at the next forward; the present value stays until then.
  void count_kept_anew() { counts_anew_ = true; }
  /// Maximum bytes at once that forwards had kept for later backwards, including inputs from other stages.
  std::int64_t most_kept_bytes() const { return most_kept_bytes_; }

 private:
  /// A micro-step on a chunk, between its forward and its backward. Between parts a tensor is
  /// [B, T, D], or rows [B T / t, D] under sequence parallelism, or [B, D] without tokens.
  struct Flight {
    at::Tensor received;  ///< with its own gradient
    at::Tensor outputs;   ///< the scaled loss on the last part
    at::Tensor gradient;  ///< of the outputs
    std::int64_t kept_bytes = 0;
  };
  Flight& flight(const PipelineOperation& operation) { return flights_[{operation.micro_step, operation.chunk}]; }
  bool is_last(std::int64_t chunk) const { return stage_ == stages_ - 1 && chunk + 1 == std::ssize(parts_); }
  bool is_first_of_micro_step(const PipelineOperation& operation) const;
  std::int64_t lent_threads(const PipelineOperation& operation) const;
  void forward(const PipelineOperation& operation, WindowWork& work);
  void compute_forward(const PipelineOperation& operation, const Batch& batch, Flight& flight, WindowWork& work);
  void backward(const PipelineOperation& operation, WindowWork& work);
  void receive_input(const PipelineOperation& operation, WindowWork& work);
  void transfer(const PipelineOperation& operation, WindowWork& work);

  std::vector<ModelPart*> parts_;
  std::int64_t stages_;
  std::int64_t stage_;
  StageLink* link_;
  PipelineShape listed_{.micro_steps = 0};
  std::vector<PipelineOperation> operations_;  ///< those of listed_, requested last
  std::optional<StageHost> host_;
  std::map<std::tuple<PipelineAction, std::int64_t, std::int64_t>, std::int64_t> lent_;  ///< threads, in operations_
  std::map<std::pair<std::int64_t, std::int64_t>, Flight> flights_;
  bool counts_kept_ = true;
  bool counts_anew_ = false;
  std::int64_t kept_bytes_ = 0;
  std::int64_t most_kept_bytes_ = 0;
};

}  // namespace accrue
