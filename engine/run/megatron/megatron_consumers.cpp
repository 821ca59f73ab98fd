// SPDX-License-Identifier: Apache-2.0
#include "megatron_consumers.h"

namespace accrue::megatron_detail {

namespace {

constexpr Consumer table[] = {
    {"parallel.tensor", "engine/parallel/tensor_layers"},
    {"parallel.sequence", "engine/parallel/tensor_layers"},
    {"parallel.pipeline_group", "engine/run/window/pipeline_schedule"},
    {"parallel.virtual_pipeline", "engine/run/window/pipeline_schedule"},
    {"parallel.pipeline", "engine/train/train_window"},
    {"parallel.split_stage", "engine/run/cost/model_share"},
    {"parallel.zero", "engine/train/training"},
    {"parallel.overlap_param_gather", "engine/train/boundary"},
    {"parallel.overlap_grad_reduce", "engine/run/plan/overlap"},
    {"parallel.backend", "engine/comm/rendezvous"},
    {"parallel.", "engine/parallel/recompute"},
    {"launch.", "engine/comm/rendezvous"},
    {"accumulation.", "engine/run/window/accumulation_window"},
    {"optimizer.clip_norm", "engine/train/boundary"},
    {"optimizer.weight_decay_style", "engine/run/window/weight_decay"},
    {"optimizer.start_weight_decay", "engine/run/window/weight_decay"},
    {"optimizer.end_weight_decay", "engine/run/window/weight_decay"},
    {"optimizer.no_decay", "engine/run/cost/parameter_groups"},
    {"optimizer.scaled_lr", "engine/run/cost/parameter_groups"},
    {"optimizer.lr_mult", "engine/run/cost/parameter_groups"},
    {"optimizer.decoupled_lr", "engine/run/cost/parameter_groups"},
    {"optimizer.decoupled_min_lr", "engine/run/window/lr_curve"},
    {"optimizer.loss_scale", "engine/train/training"},
    {"optimizer.loss_scale_window", "engine/train/training"},
    {"optimizer.loss_scale_hysteresis", "engine/train/training"},
    {"optimizer.min_loss_scale", "engine/train/training"},
    {"optimizer.", "engine/optim/flat_optimizer"},
    {"schedule.", "engine/run/window/lr_curve"},
    {"run.seed", "engine/parallel/random_streams"},
    {"run.tensorboard_dir", "engine/train/scalar_log"},
    {"run.timer_level", "engine/train/scalar_log"},
    {"run.parameter_norm", "engine/train/parameter_norms"},
    {"run.gradient_zeros", "engine/train/parameter_norms"},
    {"run.", "engine/run/window/window_walk"},
    {"evaluate.", "engine/train/evaluate"},
    {"checkpoint.", "engine/train/checkpointing"},
    {"model.", "engine/models/make_model"},
    {"data.paths", "engine/run/facts/indexed_corpus"},
    {"data.weights", "engine/run/facts/indexed_corpus"},
    {"data.split", "engine/run/facts/indexed_corpus"},
    {"data.validation_paths", "engine/run/facts/indexed_corpus"},
    {"data.validation_weights", "engine/run/facts/indexed_corpus"},
    {"data.consumed_samples", "engine/run/facts/indexed_corpus"},
    {"data.sampler", "engine/run/facts/sample_order"},
    {"data.sharding", "engine/run/facts/sample_order"},
    {"data.cache", "engine/run/facts/indexed_samples"},
    {"data.mask_probability", "engine/run/facts/indexed_requests"},
    {"data.short_sequence_probability", "engine/run/facts/indexed_samples"},
    {"data.reset_positions", "engine/data/indexed_source"},
    {"data.reset_attention", "engine/data/indexed_source"},
    {"data.mask_end_of_document", "engine/data/indexed_source"},
    {"data.", "engine/data/data_source"},
};

}  // namespace

std::span<const Consumer> consumers() {
  return table;
}

std::string_view consumer_of(std::string_view key) {
  for (const Consumer& consumer : table)
    if (consumer.keys == key || (consumer.keys.ends_with('.') && key.starts_with(consumer.keys))) return consumer.file;
  return {};
}

}  // namespace accrue::megatron_detail
