// SPDX-License-Identifier: Apache-2.0
#include "pipeline/message_link.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string>

namespace accrue {
namespace {

/// One in transit to each neighbour, and one more from the next operation.
constexpr std::size_t open_sends = 3;

/// A shape, and a hash of all stages' lists.
using Schedule = std::array<std::int64_t, 6>;

/// FNV-1a over all members of the operations, 64 bits at a time. It need not resist forgery: it finds lists that differ
/// by mistake, of all stages, since each stage simulates them all.
std::int64_t hash_of(const std::vector<std::vector<PipelineOperation>>& by_stage) {
  std::uint64_t value = 14695981039346656037ULL;
  const auto add = [&value](std::int64_t number) {
    value = (value ^ static_cast<std::uint64_t>(number)) * 1099511628211ULL;
  };
  for (const auto& operations : by_stage) {
    add(std::ssize(operations));
    for (const PipelineOperation& each : operations)
      for (const std::int64_t number : {static_cast<std::int64_t>(each.action), each.micro_step, each.chunk, each.peer})
        add(number);
  }
  return static_cast<std::int64_t>(value);
}

/// Returns "stage 1 runs all_forward_all_backward over 4 micro-steps (2 stages, chunks 1, group 2, list 1234)".
std::string describe(std::int64_t stage, std::span<const std::int64_t> said) {
  return "stage " + std::to_string(stage) + " runs " + std::string(to_string(static_cast<PipelineSchedule>(said[0]))) +
         " over " + std::to_string(said[2]) + " micro-steps (" + std::to_string(said[1]) + " stages, chunks " +
         std::to_string(said[3]) + ", group " + std::to_string(said[4]) + ", list " +
         std::to_string(static_cast<std::uint64_t>(said[5])) + ")";
}

}  // namespace

/// Both sides name the receiving part.
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
  // First wait, then send: so at most open_sends tensors are kept, [B, T, D] each.
  wait_until_open(open_sends - 1);
  open_.push_back(pipeline_.start_send(tensor.contiguous(), operation.peer, label_of(operation)));
}

void MessageLink::receive(const PipelineOperation& operation, at::Tensor& tensor) {
  pipeline_.receive(tensor, operation.peer, label_of(operation));
}

void MessageLink::compare(const PipelineShape& shape, const std::vector<std::vector<PipelineOperation>>& by_stage) {
  const Schedule own{static_cast<std::int64_t>(shape.schedule),
                     shape.stages,
                     shape.micro_steps,
                     shape.chunks,
                     shape.group,
                     hash_of(by_stage)};
  constexpr std::int64_t count = std::tuple_size_v<Schedule>;
  at::Tensor mine = at::empty({count}, at::kLong), all = at::empty({pipeline_.size(), count}, at::kLong);
  std::ranges::copy(own, mine.mutable_data_ptr<std::int64_t>());
  pipeline_.all_gather(all, mine, CollectivePurpose::check);
  const auto said_by = [&](std::int64_t stage) {
    return std::span(all.const_data_ptr<std::int64_t>() + stage * count, std::size_t{count});
  };
  for (std::int64_t stage = 1; stage < pipeline_.size(); ++stage)
    if (!std::ranges::equal(said_by(stage), said_by(0)))
      throw std::invalid_argument("the stages have different schedules: " + describe(stage, said_by(stage)) + ", and " +
                                  describe(0, said_by(0)));
}

void MessageLink::wait_until_open(std::size_t most) {
  for (; open_.size() > most; open_.pop_front()) open_.front().wait();
}

}  // namespace accrue
