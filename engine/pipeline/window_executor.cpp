// SPDX-License-Identifier: Apache-2.0
#include "pipeline/window_executor.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "models/lent_threads.h"
#include "pipeline/allocation_count.h"

namespace accrue {

WindowExecutor::WindowExecutor(std::vector<ModelPart*> parts, std::int64_t stages, std::int64_t stage, StageLink* link)
    : parts_(std::move(parts)), stages_(stages), stage_(stage), link_(link) {
  if (stages_ > 1 && link_ == nullptr) throw std::invalid_argument("several stages need a link between them");
}

const std::vector<PipelineOperation>& WindowExecutor::operations(const PipelineShape& shape) {
  if (shape == listed_) return operations_;
  if (std::ssize(parts_) != shape.chunks) throw std::invalid_argument("a stage has one model part per chunk");
  if (stages_ != shape.stages) throw std::invalid_argument("the schedule is for another number of stages");
  auto lists = pipeline_schedule(shape);
  if (!lists) throw std::invalid_argument(lists.error().text());
  if (stages_ > 1) link_->compare(shape, *lists);
  operations_ = std::move((*lists)[static_cast<std::size_t>(stage_)]);
  listed_ = shape;
  lent_.clear();
  if (host_) {
    const auto lent = pipeline_threads(shape, stage_, *host_).value();
    for (const LentThreads& each : lent) lent_[{each.action, each.micro_step, each.chunk}] = each.threads;
  }
  return operations_;
}

/// Returns 0 if the rank uses only its own threads.
std::int64_t WindowExecutor::lent_threads(const PipelineOperation& operation) const {
  const auto found = lent_.find({operation.action, operation.micro_step, operation.chunk});
  return found == lent_.end() ? 0 : found->second;
}

void WindowExecutor::run(const std::vector<PipelineOperation>& operations, WindowWork& work) {
  for (const PipelineOperation& operation : operations) {
    if (is_first_of_micro_step(operation) && !work.begin(operation.micro_step)) break;
    switch (operation.action) {
      case PipelineAction::forward:
        forward(operation, work);
        break;
      case PipelineAction::backward:
        backward(operation, work);
        break;
      default:
        transfer(operation, work);
    }
  }
  if (stages_ > 1) link_->finish();
  flights_.clear();  // of forwards without a backward
}

bool WindowExecutor::is_first_of_micro_step(const PipelineOperation& operation) const {
  const auto first = stage_ == 0 ? PipelineAction::forward : PipelineAction::receive_input;
  return operation.chunk == 0 && operation.action == first;
}

void WindowExecutor::forward(const PipelineOperation& operation, WindowWork& work) {
  const Batch& batch = work.batch(operation.micro_step);
  if (batch.empty()) return;
  if (stages_ > 1) link_->push();
  work.starts(operation);
  const ThreadLoan loan(lent_threads(operation));
  Flight& flight = this->flight(operation);
  if (counts_kept_) {
    // Bytes still allocated after the forward are those that its backward will read. The received tensor is older
    // than the scope, so it is added.
    const AllocationCount allocated;
    compute_forward(operation, batch, flight, work);
    flight.kept_bytes = allocated.live();
    if (flight.received.defined()) flight.kept_bytes += static_cast<std::int64_t>(flight.received.nbytes());
    kept_bytes_ += flight.kept_bytes;
    if (std::exchange(counts_anew_, false)) most_kept_bytes_ = 0;
    most_kept_bytes_ = std::max(most_kept_bytes_, kept_bytes_);
  } else {
    compute_forward(operation, batch, flight, work);
  }
  work.computed(operation);
}

void WindowExecutor::compute_forward(const PipelineOperation& operation, const Batch& batch, Flight& flight,
                                     WindowWork& work) {
  ModelPart& part = *parts_[static_cast<std::size_t>(operation.chunk)];
  flight.outputs = part.forward(batch, flight.received);
  if (!is_last(operation.chunk)) return;
  LossSum loss = part.loss(flight.outputs, batch);
  const double weight = work.weigh(operation.micro_step, loss);
  // weight * L, a scalar, so that backward begins with a gradient of 1. L is what the part's loss() gives:
  // in the trainer the sum over the micro-batch's items, in an Accelerator mostly its mean. The weight has what divides
  // it in this micro-step and the loss scale.
  flight.outputs = weight == 1.0 ? loss.sum : loss.sum * weight;
}

void WindowExecutor::backward(const PipelineOperation& operation, WindowWork& work) {
  if (!work.batch(operation.micro_step).empty()) {
    if (stages_ > 1) link_->push();
    work.starts(operation);
    const ThreadLoan loan(lent_threads(operation));
    Flight& flight = this->flight(operation);
    parts_[static_cast<std::size_t>(operation.chunk)]->backward(flight.outputs, flight.gradient);
    flight.outputs.reset();
    flight.gradient.reset();
    kept_bytes_ -= std::exchange(flight.kept_bytes, 0);
    work.computed(operation);
    // The received tensor is kept until its gradient has been sent.
    if (!flight.received.defined()) flights_.erase({operation.micro_step, operation.chunk});
  }
  work.finished(operation);
}

void WindowExecutor::receive_input(const PipelineOperation& operation, WindowWork& work) {
  const Batch& batch = work.batch(operation.micro_step);
  if (batch.empty()) return;
  work.transfers(operation);
  at::Tensor& received = flight(operation).received;
  received = parts_[static_cast<std::size_t>(operation.chunk)]->empty_input(batch);
  link_->receive(operation, received);
  // A leaf: backward leaves its gradient in .grad, of the same shape, from where it is sent to the stage before.
  received.set_requires_grad(true);
}

void WindowExecutor::transfer(const PipelineOperation& operation, WindowWork& work) {
  if (operation.action == PipelineAction::receive_input) return receive_input(operation, work);
  const auto found = flights_.find({operation.micro_step, operation.chunk});
  if (found == flights_.end()) return;  // skipped
  Flight& flight = found->second;
  work.transfers(operation);
  switch (operation.action) {
    case PipelineAction::send_output:
      link_->send(operation, flight.outputs.detach());
      return;
    case PipelineAction::receive_gradient:
      // The gradient of what was sent: same shape and type.
      flight.gradient = at::empty_like(flight.outputs, at::MemoryFormat::Contiguous);
      link_->receive(operation, flight.gradient);
      return;
    default: {
      const at::Tensor gradient = flight.received.grad();
      // A loss that does not depend on the received tensor leaves no gradient; the previous stage still waits for one.
      link_->send(operation, gradient.defined() ? gradient : at::zeros_like(flight.received));
      flights_.erase(found);
    }
  }
}

}  // namespace accrue
