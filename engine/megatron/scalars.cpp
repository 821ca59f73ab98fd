// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard, under Megatron-LM's tags: always rate, batch size, losses and the norm; with
// set_all_logging_options the rest. log_params_norm, log_num_zeros_in_grad and timing_log_level of other_megatron_args
// say otherwise for one tag each. x is the iteration, and for "... vs samples" the samples consumed.
#include "accrue/run/cost/model_flops.h"
#include "accrue/run/record/tensorboard_scalars.h"
#include "comm/memory_use.h"
#include "megatron/accelerator_impl.h"

namespace accrue::megatron {

void write_scalars(AcceleratorImpl& impl, const ModelOutput& out, double lr, double seconds) {
  const ResolvedMegatron& resolved = impl.resolved;
  const bool writes = resolved.effective.tensorboard_dir.has_value();
  const bool all = writes && *resolved.effective.set_all_logging_options;
  Update update{.lr = lr, .grad_norm = impl.progress.grad_norm, .losses = {out.losses.begin(), out.losses.end()}};
  if (writes && resolved.argument_or("log_params_norm", all)) update.parameter_norm = impl.optimizer->parameter_norm();
  if (writes && resolved.argument_or("log_num_zeros_in_grad", all))
    impl.timers.time("optimizer-count-zeros", [&] { update.gradient_zeros = impl.optimizer->zeros_in_gradients(); });
  if (!impl.tensorboard) return;
  if (impl.loss_scale.enabled()) update.loss_scale = impl.loss_scale.scale;
  UpdateFacts facts{.batch_size = static_cast<double>(impl.global_batch),
                    .timers = impl.timers.seconds(),
                    .timer_level = resolved.argument_or("timing_log_level", std::int64_t{all ? 2 : 0})};
  if (all) {
    facts.world = static_cast<double>(impl.mesh.grid().world());
    facts.seconds = seconds;
    if (impl.model_spec) facts.flops_of_sample = model_flops(*impl.model_spec, impl.mesh.grid().tensor);
    facts.memory = memory_use(at::kCPU);
  }
  impl.tensorboard.add(scalars_of("", update, facts), impl.progress.iteration, impl.progress.consumed_train_samples);
}

void write_evaluation(AcceleratorImpl& impl, const Evaluation& evaluation) {
  const accrue::Evaluation named{.losses = {evaluation.losses.begin(), evaluation.losses.end()}};
  impl.tensorboard.add(scalars_of("", named), evaluation.iteration, impl.progress.consumed_train_samples);
}

}  // namespace accrue::megatron
