// SPDX-License-Identifier: Apache-2.0
// What goes to TensorBoard, under Megatron-LM's tags: always rate, batch size, losses and the norm; with
// set_all_logging_options the rest. x is the iteration, and for "... vs samples" the samples consumed.
#include <cmath>
#include <cstdio>

#include "accrue/run/model_flops.h"
#include "megatron/accelerator_impl.h"

namespace accrue::megatron {
/// Training does not end for a plot: a disk that is full is named once, and the file is left as it is.
void AcceleratorImpl::write(const TensorboardScalars& scalars, std::int64_t iteration) {
  const double now = wall_clock_seconds();
  TensorboardScalars twins;
  for (const auto& [tag, value] : scalars) twins.emplace_back(tag + " vs samples", value);
  auto written = tensorboard->add(now, iteration, scalars);
  if (written) written = tensorboard->add(now, progress.consumed_train_samples, twins);
  if (written) return;
  std::fprintf(stderr, "MegatronLMPlugin: %s. No more scalars are written for TensorBoard.\n",
               written.error().text().c_str());
  tensorboard.reset();
}

void AcceleratorImpl::write_scalars(const ModelOutput& out, double seconds) {
  const bool all = *plugin().set_all_logging_options && plugin().tensorboard_dir;
  const double norm = all ? optimizer->parameter_norm() : 0.0;
  const auto zeros = all ? static_cast<double>(optimizer->zeros_in_gradients()) : 0.0;
  if (!tensorboard) return;
  TensorboardScalars scalars{{"learning-rate", lr()}, {"batch-size", static_cast<double>(global_batch)}};
  for (const auto& [name, loss] : out.losses) scalars.emplace_back(name, loss);
  if (progress.grad_norm) scalars.emplace_back("grad-norm", *progress.grad_norm);
  if (loss_scale.enabled()) scalars.emplace_back("loss-scale", loss_scale.scale);
  if (all) {
    scalars.emplace_back("world-size", static_cast<double>(mesh.grid().world()));
    scalars.emplace_back("num-zeros", zeros);
    scalars.emplace_back("params-norm", norm);
    scalars.emplace_back("iteration-time", seconds);
    const double of_sample = model_spec ? model_flops(*model_spec, mesh.grid().tensor) : 0.0;
    if (of_sample > 0.0)  // TFLOP/s of a rank
      scalars.emplace_back("throughput", of_sample * static_cast<double>(global_batch) /
                                             (seconds * 1e12 * static_cast<double>(mesh.grid().world())));
    for (const auto& [name, spent] : timers.seconds()) scalars.emplace_back(name + "-time", spent);
  }
  write(scalars, progress.iteration);
}

void AcceleratorImpl::write_evaluation(const Evaluation& evaluation) {
  if (!tensorboard) return;
  TensorboardScalars scalars;
  for (const auto& [name, loss] : evaluation.losses) {
    scalars.emplace_back(name + " validation", loss);
    scalars.emplace_back(name + " validation ppl", std::exp(std::min(20.0, loss)));
  }
  write(scalars, evaluation.iteration);
}

}  // namespace accrue::megatron
