// SPDX-License-Identifier: Apache-2.0
// Fields of Accelerate's MegatronLMPlugin that a spec can hold, under their own names. A field that is left out gets
// the plug-in's derived value. Source: accelerate v1.9.0, utils/dataclasses.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace accrue {

struct MegatronSpec {
  std::optional<std::int64_t> tp_degree;
  std::optional<std::int64_t> pp_degree;
  std::optional<std::int64_t> num_micro_batches;
  std::optional<double> gradient_clipping;
  std::optional<bool> sequence_parallelism;
  std::optional<bool> recompute_activations;
  std::optional<bool> use_distributed_optimizer;
  std::optional<std::int64_t> pipeline_model_parallel_split_rank;
  std::optional<std::int64_t> num_layers_per_virtual_pipeline_stage;
  std::optional<bool> is_train_batch_min;
  std::optional<std::int64_t> train_iters;
  std::optional<std::int64_t> train_samples;
  std::optional<std::string> weight_decay_incr_style;
  std::optional<double> start_weight_decay;
  std::optional<double> end_weight_decay;
  std::optional<std::string> lr_decay_style;
  std::optional<std::int64_t> lr_decay_iters;
  std::optional<std::int64_t> lr_decay_samples;
  std::optional<std::int64_t> lr_warmup_iters;
  std::optional<std::int64_t> lr_warmup_samples;
  std::optional<double> lr_warmup_fraction;
  std::optional<double> min_lr;
  std::optional<std::vector<std::int64_t>> consumed_samples;
  std::optional<std::vector<std::string>> no_wd_decay_cond;  ///< globs of parameter names
  std::optional<std::vector<std::string>> scale_lr_cond;     ///< globs of parameter names
  std::optional<double> lr_mult;
  std::optional<bool> megatron_dataset_flag;
  std::optional<std::int64_t> seq_length;
  std::optional<std::int64_t> encoder_seq_length;
  std::optional<std::int64_t> decoder_seq_length;
  std::optional<std::string> tensorboard_dir;
  std::optional<bool> set_all_logging_options;
  std::optional<std::int64_t> eval_iters;
  std::optional<std::int64_t> eval_interval;
  std::optional<bool> return_logits;
  // Registered names of a program or a plug-in library, for what upstream passes as a class or a function.
  std::optional<std::string> custom_train_step_class;
  std::optional<std::vector<std::string>> custom_train_step_kwargs;  ///< "name = value"
  std::optional<std::string> custom_model_provider_function;
  std::optional<std::string> custom_prepare_model_function;
  std::optional<std::string> custom_megatron_datasets_provider_function;
  std::optional<std::string> custom_get_batch_function;
  std::optional<std::string> custom_loss_function;
  std::optional<std::vector<std::string>> other_megatron_args;  ///< "name = value"
  bool operator==(const MegatronSpec&) const = default;
};

}  // namespace accrue
