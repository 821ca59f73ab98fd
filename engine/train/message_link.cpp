// SPDX-License-Identifier: Apache-2.0
#include "train/message_link.h"

namespace accrue {
namespace {

/// One on its way to each neighbour, and one more that the next operation has made.
constexpr std::size_t open_sends = 3;

}  // namespace

void MessageLink::send(const PipelineOperation& operation, const at::Tensor& tensor) {
  wait_until_open(open_sends - 1);
  open_.push_back(pipeline_.start_send(tensor.contiguous(), operation.peer));
}

void MessageLink::receive(const PipelineOperation& operation, at::Tensor& tensor) {
  pipeline_.receive(tensor, operation.peer);
}

void MessageLink::wait_until_open(std::size_t most) {
  for (; open_.size() > most; open_.pop_front()) open_.front().wait();
}

}  // namespace accrue
