// SPDX-License-Identifier: Apache-2.0
// Runs one pipeline stage's operations of a window (pipeline_schedule.h): forward and backward of the stage's model
// parts, and the transfers to and from other stages. What surrounds them (batches, weights of the losses, reduction,
// reports) is asked of a WindowWork, so that training without a pipeline is the same executor with the list of one
// stage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/models/model_part.h"
#include "accrue/run/pipeline_schedule.h"
#include "accrue/run/pipeline_threads.h"

namespace accrue {

/// Carries tensors between stages. Each side calls it in the order of its list, so a link whose send() waits for the
/// receive cannot deadlock.
class StageLink {
 public:
  virtual ~StageLink() = default;
  /// `operation` says what it is and who receives it. The tensor may be read until finish() has returned.
  virtual void send(const PipelineOperation& operation, const at::Tensor& tensor) = 0;
  /// Fills the tensor with what the other stage sends.
  virtual void receive(const PipelineOperation& operation, at::Tensor& tensor) = 0;
  /// Before a computation: what was sent so far need not wait for its end.
  virtual void push() {}
  /// Of the lists that all stages are about to run. Throws std::invalid_argument on every stage where they differ.
  /// Collective: the stages.
  virtual void compare(const PipelineShape& /*shape*/,
                       const std::vector<std::vector<PipelineOperation>>& /*by_stage*/) {}
  /// At the end of a list: returns when all that was sent has left.
  virtual void finish() {}
};

/// What a window's operations work on. Micro-steps count from 0 in the list.
class WindowWork {
 public:
  virtual ~WindowWork() = default;
  /// Before a micro-step's first operation on this stage. False: the list ends here.
  virtual bool begin(std::int64_t micro_step) = 0;
  /// Its batch, up to its last backward on this stage. One that is empty is passed over: nothing is computed for it.
  virtual const Batch& batch(std::int64_t micro_step) = 0;
  /// Before a forward or backward.
  virtual void starts(const PipelineOperation& operation) = 0;
  /// Before a transfer, or the wait for one.
  virtual void transfers(const PipelineOperation& /*operation*/) {}
  /// What the loss is multiplied by before its backward. On the last part.
  virtual double weigh(std::int64_t micro_step, LossSum& loss) = 0;
  /// After it was started; a device may still be computing it.
  virtual void computed(const PipelineOperation& operation) = 0;
  /// After the backward of a micro-step on a chunk, or where it is passed over.
  virtual void finished(const PipelineOperation& operation) = 0;
};

class WindowExecutor {
 public:
  /// `parts`: this stage's, by chunk. `link` is needed where there are several stages. Both must outlive this.
  WindowExecutor(std::vector<ModelPart*> parts, std::int64_t stages = 1, std::int64_t stage = 0,
                 StageLink* link = nullptr);

  /// All stages share this host: in lists that are asked for from here on, computations use what idle stages lend
  /// (pipeline_threads.h), as far as their tasks can (models/lent_threads.h).
  void share_host(const StageHost& host) { host_ = host; }
  /// The operations of this stage in a window of that shape. Throws std::invalid_argument where the schedule has none,
  /// or where the stages ask for different ones. Collective over the stages, if the shape is another than last time.
  const std::vector<PipelineOperation>& operations(const PipelineShape& shape);
  /// Runs them; ends early where the work does. Collective over the stages.
  void run(const std::vector<PipelineOperation>& operations, WindowWork& work);

  /// Whether forwards are counted: what they leave for their backwards, until it is known well enough.
  bool counts_kept() const { return counts_kept_; }
  void stop_counting_kept() { counts_kept_ = false; }
  /// The next forward begins the count anew; until then it stands.
  void count_kept_anew() { counts_anew_ = true; }
  /// Most bytes at once that forwards had left for backwards still to come, inputs of other stages included.
  std::int64_t most_kept_bytes() const { return most_kept_bytes_; }

 private:
  /// A micro-step on a chunk, between its forward and its backward.
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
  std::vector<PipelineOperation> operations_;  ///< of listed_, the last that were asked for
  std::optional<StageHost> host_;
  std::map<std::tuple<PipelineAction, std::int64_t, std::int64_t>, std::int64_t> lent_;  ///< threads, in operations_
  std::map<std::pair<std::int64_t, std::int64_t>, Flight> flights_;
  bool counts_kept_ = true;
  bool counts_anew_ = false;
  std::int64_t kept_bytes_ = 0;
  std::int64_t most_kept_bytes_ = 0;
};

}  // namespace accrue
