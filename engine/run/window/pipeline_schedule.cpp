// SPDX-License-Identifier: Apache-2.0
// Notation: p stages, s this stage, m micro-steps, v chunks per stage, g micro-steps per group. Sources: Huang et al.,
// arXiv:1811.06965 (all forwards, then all backwards); Narayanan et al., arXiv:2104.04473 (one forward, one backward,
// and interleaved chunks) and Megatron-LM's forward_backward_pipelining functions.
#include "accrue/run/window/pipeline_schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

#include "accrue/run/base/name_of.h"

namespace accrue {
namespace {

std::int64_t group_of(const PipelineShape& shape) {
  return shape.group > 0 ? shape.group : shape.stages;
}

/// Forwards of a stage before its first backward: m v; or p - s - 1, until the last stage answers; or interleaved
/// 2 (p - s - 1) + (v - 1) g, so that all earlier chunks of the first group are done.
std::int64_t warm_up(const PipelineShape& shape, std::int64_t stage) {
  const std::int64_t after = shape.stages - stage - 1;
  switch (shape.schedule) {
    case PipelineSchedule::all_forward_all_backward:
      return shape.micro_steps * shape.chunks;
    case PipelineSchedule::one_forward_one_backward:
      return std::min(after, shape.micro_steps);
    case PipelineSchedule::interleaved:
      return std::min(2 * after + (shape.chunks - 1) * group_of(shape), shape.micro_steps * shape.chunks);
  }
  return 0;
}

Result<void> check(const PipelineShape& shape) {
  const auto refuse = [](std::string why) { return fail(ErrorCode::config, std::move(why), "pipeline schedule"); };
  if (shape.stages < 1 || shape.micro_steps < 1 || shape.chunks < 1)
    return refuse("stages, micro-steps and chunks must each be at least 1");
  if (shape.schedule == PipelineSchedule::one_forward_one_backward && shape.chunks != 1)
    return refuse("one forward, one backward takes one chunk per stage; more need the interleaved schedule");
  if (shape.schedule != PipelineSchedule::interleaved) return {};
  if (shape.stages < 2 || shape.chunks < 2)
    return refuse("the interleaved schedule needs at least 2 stages and 2 chunks per stage");
  const std::int64_t group = group_of(shape);
  const std::int64_t rest = shape.micro_steps % group;
  if (group < shape.stages || shape.micro_steps < shape.stages || (rest != 0 && rest < shape.stages))
    return refuse("the interleaved schedule needs groups of at least as many micro-steps as there are stages (" +
                  std::to_string(shape.stages) + "), in the last group of a window too; this window has " +
                  std::to_string(shape.micro_steps) + " in groups of " + std::to_string(group));
  return {};
}

/// Micro-steps and chunks in forward order on a stage; backward the chunks come from the last. Interleaved with g = 2
/// and v = 2: micro-steps 0 1 on chunk 0, then 0 1 on chunk 1, then 2 3 on chunk 0. A micro-step returns to the first
/// stage after p turns; as g >= p, it is back when its next chunk's turn comes.
std::vector<PipelineOperation> turns(const PipelineShape& shape, PipelineAction action) {
  std::vector<PipelineOperation> order;
  const std::int64_t group = shape.schedule == PipelineSchedule::interleaved ? group_of(shape) : shape.micro_steps;
  for (std::int64_t first = 0; first < shape.micro_steps; first += group)
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk)
      for (std::int64_t m = first; m < std::min(first + group, shape.micro_steps); ++m)
        order.push_back({action, m, action == PipelineAction::forward ? chunk : shape.chunks - 1 - chunk});
  return order;
}

/// Computation of a stage: its warm-up, then forward and backward in turn, then the remaining backwards.
std::vector<PipelineOperation> computation(const PipelineShape& shape, std::int64_t stage) {
  const auto forwards = turns(shape, PipelineAction::forward);
  const auto backwards = turns(shape, PipelineAction::backward);
  const auto ahead = static_cast<std::size_t>(warm_up(shape, stage));
  std::vector<PipelineOperation> order(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (ahead + i < forwards.size()) order.push_back(forwards[ahead + i]);
    order.push_back(backwards[i]);
  }
  return order;
}

/// A tensor in transit, named by its destination: stage, receiving action, micro-step, chunk.
using Delivery = std::tuple<std::int64_t, PipelineAction, std::int64_t, std::int64_t>;

struct Stage {
  std::vector<PipelineOperation> order;
  std::size_t next = 0;
  std::optional<PipelineOperation> sending;  ///< waits for its receive
  std::vector<PipelineOperation> list;
};

class Play {
 public:
  explicit Play(const PipelineShape& shape) : shape_(shape), stages_(static_cast<std::size_t>(shape.stages)) {
    for (std::int64_t s = 0; s < shape.stages; ++s) at(s).order = computation(shape, s);
  }

  std::vector<std::vector<PipelineOperation>> lists() {
    while (!over()) {
      if (compute() || transfer(true) || transfer(false)) continue;
      throw std::logic_error("a pipeline schedule whose stages wait for each other");
    }
    std::vector<std::vector<PipelineOperation>> lists;
    for (Stage& stage : stages_) lists.push_back(std::move(stage.list));
    return lists;
  }

 private:
  Stage& at(std::int64_t stage) { return stages_[static_cast<std::size_t>(stage)]; }

  bool over() const {
    return std::ranges::all_of(stages_, [](const Stage& s) { return s.next == s.order.size() && !s.sending; });
  }

  std::int64_t part(std::int64_t stage, std::int64_t chunk) const { return chunk * shape_.stages + stage; }
  std::int64_t last_part() const { return shape_.stages * shape_.chunks - 1; }

  /// Destination of an operation's result; none for the loss and for the gradient of the inputs.
  std::optional<Delivery> result_of(std::int64_t stage, const PipelineOperation& done) const {
    const bool forward = done.action == PipelineAction::forward;
    // Part i lies on stage i mod p as its chunk i / p; results go to the next part, gradients to the previous one.
    const std::int64_t target = part(stage, done.chunk) + (forward ? 1 : -1);
    if (target < 0 || target > last_part()) return std::nullopt;
    return Delivery{target % shape_.stages, done.action, done.micro_step, target / shape_.stages};
  }

  bool needs_delivery(std::int64_t stage, const PipelineOperation& operation) const {
    const std::int64_t own = part(stage, operation.chunk);
    return operation.action == PipelineAction::forward ? own > 0 : own < last_part();
  }

  static Delivery delivery_for(std::int64_t stage, const PipelineOperation& operation) {
    return {stage, operation.action, operation.micro_step, operation.chunk};
  }

  /// Lets every stage compute until it is blocked.
  bool compute() {
    bool moved = false;
    for (std::int64_t s = 0; s < shape_.stages; ++s) {
      Stage& stage = at(s);
      while (!stage.sending && stage.next < stage.order.size()) {
        const PipelineOperation& operation = stage.order[stage.next];
        if (needs_delivery(s, operation) && !delivered_.contains(delivery_for(s, operation))) break;
        stage.list.push_back(operation);
        ++stage.next;
        if (result_of(s, operation)) stage.sending = operation;
        moved = true;
      }
    }
    return moved;
  }

  /// Makes transfers whose receiver waits for exactly them; if nothing moves, the first that waits for its receiver.
  bool transfer(bool wanted_only) {
    bool moved = false;
    for (std::int64_t s = 0; s < shape_.stages && (wanted_only || !moved); ++s) {
      if (!at(s).sending) continue;
      const Delivery delivery = result_of(s, *at(s).sending).value();
      if (wanted_only && !waits_for(delivery)) continue;
      deliver(s, delivery);
      moved = true;
    }
    return moved;
  }

  bool waits_for(const Delivery& delivery) {
    const std::int64_t receiver = std::get<0>(delivery);
    const Stage& stage = at(receiver);
    return stage.next < stage.order.size() && delivery_for(receiver, stage.order[stage.next]) == delivery;
  }

  void deliver(std::int64_t sender, const Delivery& delivery) {
    const auto& [receiver, action, micro_step, chunk] = delivery;
    const bool forward = action == PipelineAction::forward;
    at(sender).list.push_back({forward ? PipelineAction::send_output : PipelineAction::send_gradient, micro_step,
                               at(sender).sending->chunk, receiver});
    at(receiver).list.push_back(
        {forward ? PipelineAction::receive_input : PipelineAction::receive_gradient, micro_step, chunk, sender});
    at(sender).sending.reset();
    delivered_.insert(delivery);
  }

  const PipelineShape shape_;
  std::vector<Stage> stages_;
  std::set<Delivery> delivered_;
};

}  // namespace

std::string_view to_string(PipelineAction action) {
  return name_of<PipelineAction::receive_gradient>(
      action, {"forward", "backward", "send_output", "receive_input", "send_gradient", "receive_gradient"});
}

std::string_view to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::all_forward_all_backward:
      return "all_forward_all_backward";
    case PipelineSchedule::one_forward_one_backward:
      return "one_forward_one_backward";
    case PipelineSchedule::interleaved:
      return "interleaved";
  }
  return "";
}

PipelineShape pipeline_shape(const ParallelSpec& parallel, std::int64_t micro_steps) {
  const std::int64_t chunks = parallel.virtual_pipeline;
  PipelineShape shape{
      .schedule = chunks > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_forward_one_backward,
      .stages = parallel.pipeline,
      .micro_steps = micro_steps,
      .chunks = chunks,
      .group = chunks > 1 ? parallel.pipeline_group.value_or(0) : 0};
  const bool asked = parallel.pipeline_order == PipelineOrder::all_forward && parallel.pipeline > 1;
  if (asked || (shape.schedule == PipelineSchedule::interleaved && !check(shape))) {
    shape.schedule = PipelineSchedule::all_forward_all_backward;
    shape.group = 0;
  }
  return shape;
}

Result<std::vector<std::vector<PipelineOperation>>> pipeline_schedule(const PipelineShape& shape) {
  if (auto fits = check(shape); !fits) return tl::unexpected(fits.error());
  return Play(shape).lists();
}

std::int64_t pipeline_in_flight(const PipelineShape& shape, std::int64_t stage) {
  // After the warm-up each forward precedes the backward that frees memory, so one more is open for a moment. That
  // is m v for all_forward, and min(p - s, m) for one_forward: its first stage keeps most, p, however large m is.
  return std::min(warm_up(shape, stage) + 1, shape.micro_steps * shape.chunks);
}

double pipeline_bubble(const PipelineShape& shape) {
  // (p - 1) / (m v + p - 1) of the time, if all computations take equally long: filling and draining cost p - 1 of
  // them. Narayanan et al. (section 2.2) divide by the time of the work alone: (p - 1) / (m v).
  const auto idle = static_cast<double>(shape.stages - 1);
  return idle / (static_cast<double>(shape.micro_steps * shape.chunks) + idle);
}

}  // namespace accrue
