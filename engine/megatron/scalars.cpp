// SPDX-License-Identifier: Apache-2.0
// What goes to TensorBoard, under Megatron-LM's tags: always rate, batch size, losses and the norm; with
// set_all_logging_options the rest. x is the iteration, and for "... vs samples" the samples consumed.
#include <cmath>
#include <stdexcept>

#include "megatron/accelerator_impl.h"

namespace accrue::megatron {
namespace {

void add(TensorboardFile& file, const TensorboardScalars& scalars, std::int64_t iteration, std::int64_t samples) {
  const double now = wall_clock_seconds();
  TensorboardScalars twins;
  for (const auto& [tag, value] : scalars) twins.emplace_back(tag + " vs samples", value);
  auto written = file.add(now, iteration, scalars);
  if (written) written = file.add(now, samples, twins);
  if (!written) throw std::runtime_error(written.error().text());
}

}  // namespace

void AcceleratorImpl::write_scalars(const ModelOutput& out, double seconds) {
  const bool all = *plugin().set_all_logging_options && plugin().tensorboard_dir;
  const double norm = all ? optimizer->parameter_norm() : 0.0;
  const auto zeros = all ? static_cast<double>(optimizer->zeros_in_gradients()) : 0.0;
  if (!tensorboard) return;
  TensorboardScalars scalars{{"learning-rate", lr()}, {"batch-size", static_cast<double>(global_batch)}};
  for (const auto& [name, loss] : out.losses) scalars.emplace_back(name, loss);
  if (progress.grad_norm) scalars.emplace_back("grad-norm", *progress.grad_norm);
  if (all) {
    scalars.emplace_back("world-size", static_cast<double>(mesh.grid().world()));
    scalars.emplace_back("num-zeros", zeros);
    scalars.emplace_back("params-norm", norm);
    scalars.emplace_back("iteration-time", seconds);
  }
  add(*tensorboard, scalars, progress.iteration, progress.consumed_train_samples);
}

void AcceleratorImpl::write_evaluation(const Evaluation& evaluation) {
  if (!tensorboard) return;
  TensorboardScalars scalars;
  for (const auto& [name, loss] : evaluation.losses) {
    scalars.emplace_back(name + " validation", loss);
    scalars.emplace_back(name + " validation ppl", std::exp(std::min(20.0, loss)));
  }
  add(*tensorboard, scalars, evaluation.iteration, progress.consumed_train_samples);
}

}  // namespace accrue::megatron
