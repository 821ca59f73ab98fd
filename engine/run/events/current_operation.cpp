// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/current_operation.h"

#include <algorithm>
#include <array>

#include "accrue/run/cost/rank_grid.h"

namespace accrue {
namespace {

constexpr std::array<std::string_view, 7> ops{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                              "send",       "receive",        "barrier"};
constexpr std::uint64_t twelve_bits = 0xfff;  // limit of chunk and peer; larger values are only shown wrong

bool is_transfer(PipelineAction action) {
  return action != PipelineAction::forward && action != PipelineAction::backward;
}

std::string words_of(PipelineAction action) {
  switch (action) {
    case PipelineAction::forward:
      return "forward of ";
    case PipelineAction::backward:
      return "backward of ";
    case PipelineAction::send_output:
      return "sending the output of ";
    case PipelineAction::receive_input:
      return "receiving the input of ";
    case PipelineAction::send_gradient:
      return "sending the gradient of ";
    case PipelineAction::receive_gradient:
      return "receiving the gradient of ";
  }
  return {};
}

}  // namespace

void CurrentOperation::begins(const PipelineOperation& operation, std::int64_t micro_step, std::int64_t chunks) {
  const auto action = static_cast<std::uint64_t>(operation.action) + 1;
  const std::uint64_t names_chunk = chunks > 1 ? 1 : 0;
  operation_.store(action | names_chunk << 4 | (static_cast<std::uint64_t>(operation.chunk) & twelve_bits) << 8 |
                       (static_cast<std::uint64_t>(operation.peer) & twelve_bits) << 20 |
                       static_cast<std::uint64_t>(micro_step) << 32,
                   std::memory_order_relaxed);
}

void CurrentOperation::waits_in(std::string_view op, std::string_view axis) {
  const auto known = std::ranges::find(ops, op);
  if (known == ops.end()) return;
  std::uint32_t number = 0;
  while (number < static_cast<std::uint32_t>(Axis::world) && to_string(static_cast<Axis>(number)) != axis) ++number;
  call_.store(static_cast<std::uint32_t>(known - ops.begin() + 1) | number << 8, std::memory_order_relaxed);
}

std::string CurrentOperation::text() const {
  const std::uint64_t operation = operation_.load(std::memory_order_relaxed);
  const std::uint32_t call = call_.load(std::memory_order_relaxed);
  std::string text;
  if (operation > 0) {
    const auto action = static_cast<PipelineAction>((operation & 0xf) - 1);
    text = words_of(action) + "micro-step " + std::to_string(operation >> 32);
    if ((operation >> 4 & 1) != 0) text += ", chunk " + std::to_string(operation >> 8 & twelve_bits);
    const std::string peer = "stage " + std::to_string(operation >> 20 & twelve_bits);
    const bool sends = action == PipelineAction::send_output || action == PipelineAction::send_gradient;
    if (is_transfer(action)) return text + (sends ? " to " : " from ") + peer;
  }
  if (call == 0) return text;
  if (!text.empty()) text += ": ";
  return text + std::string(ops[(call & 0xff) - 1]) + " over the " +
         std::string(to_string(static_cast<Axis>(call >> 8))) + " ranks";
}

}  // namespace accrue
