// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/tensorboard_scalars.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace accrue {
namespace {

/// Adds the known figures; 0 is unknown.
void add_memory(TensorboardScalars& scalars, const MemoryUse& memory) {
  const auto add = [&scalars](const char* tag, std::int64_t value) {
    if (value > 0) scalars.emplace_back(tag, static_cast<double>(value));
  };
  add("mem-reserved-bytes", memory.reserved_bytes);
  add("mem-allocated-bytes", memory.allocated_bytes);
  add("mem-max-allocated-bytes", memory.most_allocated_bytes);
  add("mem-allocated-count", memory.allocations);
}

}  // namespace

std::string loss_tag(const ModelSpec& model) {
  return is_transformer(model.kind) && !has_second_loss(model) ? token_loss_name : "loss";
}

TensorboardScalars scalars_of(const std::string& loss, const Update& update, const UpdateFacts& facts) {
  TensorboardScalars scalars;
  if (update.lr) scalars.emplace_back("learning-rate", *update.lr);
  scalars.emplace_back("batch-size", facts.batch_size);
  if (update.outcome != StepOutcome::skipped_empty) {  // the loss of a window without a label is meaningless
    if (!loss.empty()) scalars.emplace_back(loss, update.loss);
    for (const auto& [name, part] : update.losses) scalars.emplace_back(name, part);
  }
  if (update.loss_scale) scalars.emplace_back("loss-scale", *update.loss_scale);
  if (facts.world > 0.0) scalars.emplace_back("world-size", facts.world);
  if (update.grad_norm) scalars.emplace_back("grad-norm", *update.grad_norm);
  if (update.gradient_zeros) scalars.emplace_back("num-zeros", static_cast<double>(*update.gradient_zeros));
  if (update.parameter_norm) scalars.emplace_back("params-norm", *update.parameter_norm);
  if (update.update_norm) scalars.emplace_back("update-norm", *update.update_norm);
  for (const auto& [name, value] : update.scalars) scalars.emplace_back(name, value);
  if (facts.seconds > 0.0) scalars.emplace_back("iteration-time", facts.seconds);
  if (facts.flops_of_sample > 0.0 && facts.seconds > 0.0)  // TFLOP/s per rank
    scalars.emplace_back("throughput", facts.flops_of_sample * facts.batch_size / (facts.seconds * 1e12 * facts.world));
  add_memory(scalars, facts.memory);
  for (const auto& [name, spent] : facts.timers)
    if (timer_level_of(name) <= facts.timer_level) scalars.emplace_back(name + "-time", spent);
  return scalars;
}

std::int64_t timer_level_of(const std::string& timer) {
  constexpr std::string_view of_micro_steps[] = {"forward-compute", "backward-compute", "batch-generator",
                                                 "forward-send",    "forward-recv",     "backward-send",
                                                 "backward-recv"};
  return std::ranges::find(of_micro_steps, timer) == std::end(of_micro_steps) ? 1 : 2;
}

TensorboardScalars scalars_of(const std::string& loss, const Evaluation& evaluation) {
  TensorboardScalars scalars;
  const auto add = [&scalars](const std::string& name, double value) {
    scalars.emplace_back(name + " validation", value);
    scalars.emplace_back(name + " validation ppl", std::exp(std::min(20.0, value)));
  };
  if (!loss.empty()) add(loss, evaluation.loss);
  for (const auto& [name, part] : evaluation.losses) add(name, part);
  for (const auto& [name, value] : evaluation.scalars) scalars.emplace_back(name + " validation", value);
  return scalars;
}

TensorboardScalars over_samples(const TensorboardScalars& scalars) {
  TensorboardScalars twins;
  for (const auto& [tag, value] : scalars) twins.emplace_back(tag + " vs samples", value);
  return twins;
}

}  // namespace accrue
