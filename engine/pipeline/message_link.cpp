// SPDX-License-Identifier: Apache-2.0
#include "pipeline/message_link.h"

namespace accrue {
namespace {

/// One on its way to each neighbour, and one more that the next operation has made.
constexpr std::size_t open_sends = 3;

}  // namespace

/// Both sides name the part that takes the tensor.
MessageLabel MessageLink::label_of(const PipelineOperation& operation) const {
  const std::int64_t own = operation.chunk * pipeline_.size() + pipeline_.rank();
  const auto label = [&](MessageLabel::What what, std::int64_t part) {
    return MessageLabel{.what = what, .part = static_cast<std::int32_t>(part), .micro_step = operation.micro_step};
  };
  switch (operation.action) {
    case PipelineAction::send_output:
      return label(MessageLabel::What::input, own + 1);
    case PipelineAction::receive_input:
      return label(MessageLabel::What::input, own);
    case PipelineAction::send_gradient:
      return label(MessageLabel::What::gradient, own - 1);
    case PipelineAction::receive_gradient:
      return label(MessageLabel::What::gradient, own);
    default:
      return {};
  }
}

void MessageLink::send(const PipelineOperation& operation, const at::Tensor& tensor) {
  wait_until_open(open_sends - 1);
  open_.push_back(pipeline_.start_send(tensor.contiguous(), operation.peer, label_of(operation)));
}

void MessageLink::receive(const PipelineOperation& operation, at::Tensor& tensor) {
  pipeline_.receive(tensor, operation.peer, label_of(operation));
}

void MessageLink::wait_until_open(std::size_t most) {
  for (; open_.size() > most; open_.pop_front()) open_.front().wait();
}

}  // namespace accrue
