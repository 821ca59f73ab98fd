// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/tensorboard_scalars.h"

#include <algorithm>
#include <cmath>

namespace accrue {

std::string loss_tag(ModelKind kind) {
  return is_transformer(kind) ? "lm loss" : "loss";
}

TensorboardScalars scalars_of(const std::string& loss, const Update& update, const UpdateFacts& facts) {
  TensorboardScalars scalars{{"learning-rate", update.lr}, {"batch-size", facts.batch_size}, {loss, update.loss}};
  if (facts.loss_scale > 0.0) scalars.emplace_back("loss-scale", facts.loss_scale);
  scalars.emplace_back("world-size", facts.world);
  scalars.emplace_back("grad-norm", update.grad_norm);
  scalars.emplace_back("iteration-time", facts.seconds);
  if (facts.flops_of_sample > 0.0 && facts.seconds > 0.0)  // TFLOP/s of a rank
    scalars.emplace_back("throughput", facts.flops_of_sample * facts.batch_size / (facts.seconds * 1e12 * facts.world));
  if (facts.device_bytes > 0) scalars.emplace_back("mem-allocated-bytes", static_cast<double>(facts.device_bytes));
  for (const auto& [name, spent] : facts.timers) scalars.emplace_back(name + "-time", spent);
  return scalars;
}

TensorboardScalars scalars_of(const std::string& loss, const Evaluation& evaluation) {
  return {{loss + " validation", evaluation.loss},
          {loss + " validation ppl", std::exp(std::min(20.0, evaluation.loss))}};
}

TensorboardScalars over_samples(const TensorboardScalars& scalars) {
  TensorboardScalars twins;
  for (const auto& [tag, value] : scalars) twins.emplace_back(tag + " vs samples", value);
  return twins;
}

}  // namespace accrue
