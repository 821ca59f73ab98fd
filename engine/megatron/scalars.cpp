// SPDX-License-Identifier: Apache-2.0
// What goes to TensorBoard, under Megatron-LM's tags: always rate, batch size, losses and the norm; with
// set_all_logging_options the rest. log_params_norm, log_num_zeros_in_grad and timing_log_level of other_megatron_args
// say otherwise for one tag each. x is the iteration, and for "... vs samples" the samples consumed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "accrue/run/model_flops.h"
#include "accrue/run/tensorboard_scalars.h"
#include "comm/memory_use.h"
#include "megatron/accelerator_impl.h"

namespace accrue::megatron {
/// Training does not end for a plot: a disk that is full is named once, and the file is left as it is.
void AcceleratorImpl::write(const TensorboardScalars& scalars, std::int64_t iteration) {
  const double now = wall_clock_seconds();
  auto written = tensorboard->add(now, iteration, scalars);
  if (written) written = tensorboard->add(now, progress.consumed_train_samples, over_samples(scalars));
  if (written) return;
  std::fprintf(stderr, "MegatronLMPlugin: %s. No more scalars are written for TensorBoard.\n",
               written.error().text().c_str());
  tensorboard.reset();
}

void AcceleratorImpl::write_scalars(const ModelOutput& out, double lr, double seconds) {
  const bool writes = plugin().tensorboard_dir.has_value();
  const bool all = writes && *plugin().set_all_logging_options;
  const bool logs_norm = writes && resolved.argument_or("log_params_norm", all);
  const bool logs_zeros = writes && resolved.argument_or("log_num_zeros_in_grad", all);
  const double norm = logs_norm ? optimizer->parameter_norm() : 0.0;
  double zeros = 0.0;
  if (logs_zeros) {
    const auto timing = timers.run("optimizer-count-zeros");
    zeros = static_cast<double>(optimizer->zeros_in_gradients());
  }
  if (!tensorboard) return;
  TensorboardScalars scalars{{"learning-rate", lr}, {"batch-size", static_cast<double>(global_batch)}};
  for (const auto& [name, loss] : out.losses) scalars.emplace_back(name, loss);
  if (progress.grad_norm) scalars.emplace_back("grad-norm", *progress.grad_norm);
  if (loss_scale.enabled()) scalars.emplace_back("loss-scale", loss_scale.scale);
  if (logs_zeros) scalars.emplace_back("num-zeros", zeros);
  if (logs_norm) scalars.emplace_back("params-norm", norm);
  if (all) {
    scalars.emplace_back("world-size", static_cast<double>(mesh.grid().world()));
    scalars.emplace_back("iteration-time", seconds);
    const double of_sample = model_spec ? model_flops(*model_spec, mesh.grid().tensor) : 0.0;
    if (of_sample > 0.0)  // TFLOP/s of a rank
      scalars.emplace_back("throughput", of_sample * static_cast<double>(global_batch) /
                                             (seconds * 1e12 * static_cast<double>(mesh.grid().world())));
    std::ranges::copy(scalars_of(memory_use(at::kCPU)), std::back_inserter(scalars));
  }
  std::ranges::copy(scalars_of(timers.seconds(), resolved.argument_or("timing_log_level", std::int64_t{all ? 2 : 0})),
                    std::back_inserter(scalars));
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
