// SPDX-License-Identifier: Apache-2.0
#include "megatron/step_runner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "megatron/same_batch.h"
#include "pipeline/forward_pass.h"
#include "pipeline/message_link.h"

namespace accrue::megatron {
namespace {

/// The executor passes over batches without items; ours always have some.
accrue::Batch computed_batch() {
  accrue::Batch batch;
  batch.samples = 1;
  batch.items = 1;
  return batch;
}

void add(LossReport& sums, const LossReport& report) {
  for (const auto& [name, value] : report) {
    const auto found = std::ranges::find(sums, name, &LossReport::value_type::first);
    if (found == sums.end())
      sums.emplace_back(name, value.detach().clone());
    else
      found->second.add_(value.detach());
  }
}

}  // namespace

void check_loss(const LossOut& out) {
  if (!out.loss.defined() || out.loss.numel() != 1)
    throw std::invalid_argument("the loss function must give a loss of one element");
  if (at::GradMode::is_enabled() && !out.loss.requires_grad())
    throw std::invalid_argument("the loss function gave a loss that no gradient leads back from: it was detached");
  for (const auto& [name, value] : out.report)
    if (name.empty() || !value.defined())
      throw std::invalid_argument("the loss function reports a loss without a name or a value");
}

/// Times how long this thread waits in each call. A receive ends when the message has arrived. A send is only started,
/// so its timer contains the copy of a tensor that is not contiguous, and the wait for an older send while three are in
/// progress. No timer contains the transfer itself or the waits of finish(). The trainer, which sees each message end,
/// times sends to their end (train/reporter.cpp).
class StepRunner::TimedLink final : public StageLink {
 public:
  TimedLink(Communicator& pipeline, Timers& timers) : link_(pipeline), timers_(timers) {}

  void send(const PipelineOperation& operation, const at::Tensor& tensor) override {
    const bool forward = operation.action == PipelineAction::send_output;
    const auto timing = timers_.run(forward ? "forward-send" : "backward-send");
    link_.send(operation, tensor);
  }
  void receive(const PipelineOperation& operation, at::Tensor& tensor) override {
    const bool forward = operation.action == PipelineAction::receive_input;
    const auto timing = timers_.run(forward ? "forward-recv" : "backward-recv");
    link_.receive(operation, tensor);
  }
  void push() override { link_.push(); }
  void compare(const PipelineShape& shape, const std::vector<std::vector<PipelineOperation>>& by_stage) override {
    link_.compare(shape, by_stage);
  }
  void finish() override { link_.finish(); }

 private:
  MessageLink link_;
  Timers& timers_;
};

/// Data that the operations of one step share.
class StepRunner::Work final : public WindowWork {
 public:
  Work(Timers& timers) : timers_(timers) {}

  bool begin(std::int64_t /*micro_step*/) override { return true; }
  const accrue::Batch& batch(std::int64_t /*micro_step*/) override { return batch_; }
  void starts(const PipelineOperation& operation) override {
    now = operation.micro_step;
    timing_.emplace(timers_, operation.action == PipelineAction::forward ? "forward-compute" : "backward-compute");
  }
  void transfers(const PipelineOperation& operation) override { now = operation.micro_step; }
  /// Factor of a micro-batch's loss before its backward: S / m for a mean, S for a sum of tokens' losses. A mean over a
  /// filled-up batch weighs as much as its real rows.
  double weigh(std::int64_t micro_step, LossSum& /*loss*/) override {
    return alike ? weight : weight * row_share(micro_batches->at(static_cast<std::size_t>(micro_step)));
  }
  void computed(const PipelineOperation& /*operation*/) override { timing_.reset(); }
  void finished(const PipelineOperation& /*operation*/) override {}

  const std::vector<Batch>* micro_batches = nullptr;
  std::int64_t now = 0;
  double weight = 1.0;  ///< of a micro-batch's loss in its gradient
  bool alike = false;   ///< micro-batches give sums, and their items count
  StepSums sums;

 private:
  Timers& timers_;
  std::optional<Timers::Running> timing_;
  accrue::Batch batch_ = computed_batch();
};

/// A chunk as the executor sees it.
class StepRunner::ChunkPart final : public ModelPart {
 public:
  ChunkPart(StepRunner& runner, ModelChunk& chunk) : runner_(runner), chunk_(chunk) {}

  at::Tensor forward(const accrue::Batch& /*batch*/, const at::Tensor& received) override {
    chunk_.set_input_tensor(received);
    DataIter data = iterator();
    out_ = runner_.step_.forward_step(data, chunk_, static_cast<int>(runner_.work_->now));
    if (out_.outputs.empty() || !out_.outputs.front().defined())
      throw std::invalid_argument("a model chunk's forward() gave no output");
    if (runner_.options_.compare_batches) demand_same_batch(out_.batch, runner_.mesh_);
    return out_.outputs.front();
  }

  LossSum loss(const at::Tensor& /*outputs*/, const accrue::Batch& /*batch*/) override {
    const StepRunnerOptions& options = runner_.options_;
    const LossOut out =
        options.loss ? options.loss(out_.batch, out_.outputs) : runner_.step_.loss_func(out_.batch, out_.outputs);
    check_loss(out);
    StepSums& sums = runner_.work_->sums;
    add(sums.report, out.report);
    sums.finite = sums.finite && at::isfinite(out.loss.detach()).item<bool>();
    if (options.return_logits) sums.logits.push_back(chunk_.logits(out_.outputs).detach());
    out_ = {};
    // Source: forward_step() of Megatron-LM's schedules. Per token the sum stays, and finish_gradients() divides; else
    // the loss is divided by its own tokens and by m.
    if (options.calculate_per_token_loss) {
      if (!out.num_tokens)
        throw std::invalid_argument("calculate_per_token_loss needs a loss_func() that gives a sum and num_tokens");
      sums.tokens += *out.num_tokens;
      return {out.loss, 1};
    }
    at::Tensor loss = out.loss;
    // A loss with a count is a sum: the step averages the micro-batches' means.
    if (out.num_tokens) loss = loss / static_cast<double>(std::max<std::int64_t>(*out.num_tokens, 1));
    return {loss, 1};
  }

  at::Tensor empty_input(const accrue::Batch& /*batch*/) const override {
    DataIter data = iterator();
    return chunk_.empty_input(runner_.step_.get_batch(data));
  }

 private:
  DataIter iterator() const {
    return DataIter({runner_.work_->micro_batches->at(static_cast<std::size_t>(runner_.work_->now))});
  }

  StepRunner& runner_;
  ModelChunk& chunk_;
  ForwardOut out_;
};

StepRunner::StepRunner(const std::vector<std::shared_ptr<ModelChunk>>& chunks, AbstractTrainStep& step, Mesh& mesh,
                       Timers& timers, StepRunnerOptions options)
    : chunks_(chunks),
      step_(step),
      mesh_(mesh),
      timers_(timers),
      options_(std::move(options)),
      link_(std::make_unique<TimedLink>(mesh.pipeline(), timers)),
      work_(std::make_unique<Work>(timers)) {
  std::vector<ModelPart*> parts;
  for (const auto& chunk : chunks) {
    parts_.push_back(std::make_shared<ChunkPart>(*this, *chunk));
    parts.push_back(parts_.back().get());
  }
  executor_ = std::make_unique<WindowExecutor>(parts, mesh.grid().pipeline, mesh.at().pipeline, link_.get());
  executor_->stop_counting_kept();
}

StepRunner::~StepRunner() = default;

StepSums StepRunner::train(const std::vector<Batch>& micro_batches, const Division& division, double loss_scale) {
  work_->alike = division.counts();
  // A step's gradient is that of the sum over micro-batches of S / division.value * loss, with S the loss scale and
  // division.value m, or 1 if tokens divide later. S multiplies the loss, so that float16 rounds scaled gradients.
  work_->weight = loss_scale * (1.0 / division.value);
  return run(micro_batches, true);
}

StepSums StepRunner::evaluate(const std::vector<Batch>& micro_batches) {
  const at::NoGradGuard no_grad;
  return run(micro_batches, false);
}

at::Tensor StepRunner::logits(const Batch& batch) {
  const at::NoGradGuard no_grad;
  Communicator& pipeline = mesh_.pipeline();
  const std::int64_t stages = pipeline.size();
  at::Tensor logits = forward_pass(
      *link_, pipeline, chunks_.size(), [&](std::size_t i) { return chunks_[i]->empty_input(batch); },
      [&](std::size_t i, const at::Tensor& received) {
        chunks_[i]->set_input_tensor(received);
        const Tensors outputs = chunks_[i]->forward(batch);
        // [rows, positions, V / t] on the last part; activations for the next stage on the others.
        const bool last = mesh_.last_stage() && i + 1 == chunks_.size();
        return last ? chunks_[i]->logits(outputs).contiguous() : outputs.at(0);
      });
  if (stages == 1) return logits;
  link_->finish();
  // [rows, positions, vocabulary / t, type] of the logits, which other stages cannot know.
  at::Tensor shape = at::zeros({4}, at::kLong);
  if (logits.defined())
    shape = at::tensor(
        {logits.size(0), logits.size(1), logits.size(2), static_cast<std::int64_t>(logits.scalar_type())}, at::kLong);
  pipeline.broadcast(shape, stages - 1);
  const auto* sizes = shape.const_data_ptr<std::int64_t>();
  if (!logits.defined()) logits = at::empty({sizes[0], sizes[1], sizes[2]}, static_cast<at::ScalarType>(sizes[3]));
  pipeline.broadcast(logits, stages - 1, CollectivePurpose::activations);
  return logits;
}

StepSums StepRunner::run(const std::vector<Batch>& micro_batches, bool backward) {
  const auto count = std::ssize(micro_batches);
  work_->micro_batches = &micro_batches;
  work_->sums = {};
  const auto timing = timers_.run("forward-backward");
  const PipelineShape shape = pipeline_shape(options_.parallel, count);
  std::vector<PipelineOperation> operations = executor_->operations(shape);
  // The schedule without its backward half: stages still send and receive in the same order.
  if (!backward)
    std::erase_if(operations, [](const PipelineOperation& each) {
      return each.action == PipelineAction::backward || each.action == PipelineAction::send_gradient ||
             each.action == PipelineAction::receive_gradient;
    });
  executor_->run(operations, *work_);
  StepSums sums = std::move(work_->sums);
  work_->sums = {};
  work_->micro_batches = nullptr;
  for (auto& [name, value] : sums.report)
    // A value is a mean over the step's micro-batches; a pair (sum, count) stays a sum.
    if (value.numel() == 1) value.div_(static_cast<double>(count));
  return sums;
}

}  // namespace accrue::megatron
