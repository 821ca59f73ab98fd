// SPDX-License-Identifier: Apache-2.0
// Rows of [megatron]: the fields of Accelerate's MegatronLMPlugin under their own names, in the order of its signature.
// The room megatron has their defaults, overrides and consequences.
#include "spec_field_list.h"

namespace accrue::field_detail {

namespace {

constexpr std::string_view decay_styles[] = {"constant", "linear", "cosine", "inverse-square-root", "WSD"};
constexpr std::string_view incr_styles[] = {"constant", "linear", "cosine"};

constexpr double most_samples = 1e13;

void add_layout(FieldList& list) {
  list.add(ACCRUE_FIELD(megatron.tp_degree), "tp_degree",
           "Ranks that share each layer's matrices: parallel.tensor. Left out: MEGATRON_LM_TP_DEGREE, else 1.")
      .range(1, 1024, "ranks");
  list.add(ACCRUE_FIELD(megatron.pp_degree), "pp_degree",
           "Stages of the pipeline: parallel.pipeline. Left out: MEGATRON_LM_PP_DEGREE, else 1.")
      .range(1, 1024, "ranks");
  list.add(ACCRUE_FIELD(megatron.num_micro_batches), "num_micro_batches",
           "Micro-steps of a window: accumulation.steps. Left out: MEGATRON_LM_NUM_MICRO_BATCHES, else 1.")
      .range(1, max_window_steps, "micro-steps");
  list.add(ACCRUE_FIELD(megatron.gradient_clipping), "gradient_clipping",
           "Longest gradient of an update, as the L2 norm over all parameters: optimizer.clip_norm; 0 switches "
           "clipping off. Left out: MEGATRON_LM_GRADIENT_CLIPPING, else 1.")
      .range(0, 1e9);
  list.add(ACCRUE_FIELD(megatron.sequence_parallelism), "sequence_parallelism",
           "Tensor ranks share the positions between the matrices: parallel.sequence. With tp_degree 1 it is off. "
           "Left out: MEGATRON_LM_SEQUENCE_PARALLELISM, else false.");
  list.add(ACCRUE_FIELD(megatron.recompute_activations), "recompute_activations",
           "Backward computes the attention between its matrices again: parallel.recompute = selective. Left out: "
           "MEGATRON_LM_RECOMPUTE_ACTIVATIONS, else false.");
  list.add(ACCRUE_FIELD(megatron.use_distributed_optimizer), "use_distributed_optimizer",
           "Each replica holds its share of the optimizer's state: parallel.zero = 1. Left out: "
           "MEGATRON_LM_USE_DISTRIBUTED_OPTIMIZER, else false.");
  list.add(ACCRUE_FIELD(megatron.pipeline_model_parallel_split_rank), "pipeline_model_parallel_split_rank",
           "T5: the first stage of the decoder, parallel.split_stage; at least 1 and below pp_degree.")
      .range(1, 1023, "stages");
  list.add(ACCRUE_FIELD(megatron.num_layers_per_virtual_pipeline_stage), "num_layers_per_virtual_pipeline_stage",
           "Layers in each of the chunks that a stage holds; parallel.virtual_pipeline is the layers of a stage "
           "divided by it.")
      .range(1, 1e6, "layers");
  list.add(ACCRUE_FIELD(megatron.is_train_batch_min), "is_train_batch_min",
           "The micro-batch is the smallest (true) or the largest (false) of the prepared loaders' batch sizes. "
           "In a spec all data have one, accumulation.micro_batch. Left out: true.");
}

void add_schedule(FieldList& list) {
  list.add(ACCRUE_FIELD(megatron.train_iters), "train_iters",
           "Updates of the run: run.updates. Excludes train_samples and the lengths that are given in samples.")
      .range(1, 1e8, "updates");
  list.add(ACCRUE_FIELD(megatron.train_samples), "train_samples",
           "Samples of the run: run.samples. Excludes train_iters and the lengths that are given in iterations.")
      .range(1, most_samples, "samples");
  list.add(ACCRUE_FIELD(megatron.weight_decay_incr_style), "weight_decay_incr_style",
           "How weight decay moves over the samples of the run: optimizer.weight_decay_style. Left out: constant.")
      .one_of(incr_styles);
  list.add(ACCRUE_FIELD(megatron.start_weight_decay), "start_weight_decay",
           "Where a linear or cosine weight decay starts.")
      .range(0, 1e3);
  list.add(ACCRUE_FIELD(megatron.end_weight_decay), "end_weight_decay",
           "Where a linear or cosine weight decay ends; not below its start.")
      .range(0, 1e3);
  list.add(ACCRUE_FIELD(megatron.lr_decay_style), "lr_decay_style",
           "How the rate falls after the warm-up: schedule.kind, counted in samples. Left out: linear.")
      .one_of(decay_styles);
  list.add(ACCRUE_FIELD(megatron.lr_decay_iters), "lr_decay_iters",
           "Updates after which the rate has fallen to min_lr. Left out: train_iters.")
      .range(1, 1e8, "updates");
  list.add(ACCRUE_FIELD(megatron.lr_decay_samples), "lr_decay_samples",
           "Samples after which the rate has fallen to min_lr. Left out: train_samples.")
      .range(1, most_samples, "samples");
  list.add(ACCRUE_FIELD(megatron.lr_warmup_iters), "lr_warmup_iters",
           "Updates over which the rate rises; fewer than it falls in.")
      .range(0, 1e8, "updates");
  list.add(ACCRUE_FIELD(megatron.lr_warmup_samples), "lr_warmup_samples",
           "Samples over which the rate rises; fewer than it falls in.")
      .range(0, most_samples, "samples");
  list.add(ACCRUE_FIELD(megatron.lr_warmup_fraction), "lr_warmup_fraction",
           "Part of the rate's whole length in which it rises, in place of a number of updates or samples.")
      .range(0, 0.999999);
  list.add(ACCRUE_FIELD(megatron.min_lr), "min_lr", "Where the rate ends: schedule.min_lr. Left out: 0.").range(0, 1e6);
}

void add_data_and_groups(FieldList& list) {
  list.add(ACCRUE_FIELD(megatron.consumed_samples), "consumed_samples",
           "Samples of training, validation and test that were used before: data.consumed_samples. What is left "
           "out of the three is 0.")
      .range(0, most_samples, "samples");
  list.add(ACCRUE_FIELD(megatron.no_wd_decay_cond), "no_wd_decay_cond",
           "Names of parameters that weight decay leaves alone; * stands for any characters. Left out: biases and "
           "the weights of norms.");
  list.add(ACCRUE_FIELD(megatron.scale_lr_cond), "scale_lr_cond",
           "Names of parameters whose rate lr_mult multiplies; * stands for any characters.");
  list.add(ACCRUE_FIELD(megatron.lr_mult), "lr_mult", "Factor of the rate of what scale_lr_cond names. Left out: 1.")
      .above(0, 1e6);
  list.add(ACCRUE_FIELD(megatron.megatron_dataset_flag), "megatron_dataset_flag",
           "The data are indexed datasets: data.kind = indexed. Left out: false.");
  list.add(ACCRUE_FIELD(megatron.seq_length), "seq_length",
           "Tokens of a sample: model.context. Left out: encoder_seq_length of a BERT, decoder_seq_length of a "
           "GPT, else model.context.")
      .range(1, 1048576, "tokens");
  list.add(ACCRUE_FIELD(megatron.encoder_seq_length), "encoder_seq_length",
           "Tokens that the encoder of a T5 sees, or a BERT: model.context.")
      .range(1, 1048576, "tokens");
  list.add(ACCRUE_FIELD(megatron.decoder_seq_length), "decoder_seq_length",
           "Tokens that the decoder of a T5 sees, model.decoder_context, or a GPT, model.context.")
      .range(1, 1048576, "tokens");
}

void add_reports(FieldList& list) {
  list.add(ACCRUE_FIELD(megatron.tensorboard_dir), "tensorboard_dir",
           "Folder of TensorBoard's event files: run.tensorboard_dir.");
  list.add(
      ACCRUE_FIELD(megatron.set_all_logging_options), "set_all_logging_options",
      "Adds params-norm and num-zeros to tensorboard_dir, which it needs: run.parameter_norm and run.gradient_zeros. "
      "The folder has in any case learning-rate, batch-size, the losses, loss-scale where there is one, world-size, "
      "grad-norm, iteration-time, throughput, the memory of the rank that writes (mem-reserved-bytes and "
      "mem-max-allocated-bytes; on a CPU what is resident, now and at most), timers as forward-compute-time "
      "(timing_log_level), and the losses of evaluations. "
      "Left out: false.");
  list.add(ACCRUE_FIELD(megatron.eval_iters), "eval_iters",
           "Batches of an evaluation: evaluate.batches. Left out: 100.")
      .range(0, 1e9, "batches");
  list.add(ACCRUE_FIELD(megatron.eval_interval), "eval_interval",
           "Updates between two evaluations: evaluate.every_updates. Left out: 1000.")
      .range(1, 1e9, "updates");
  list.add(ACCRUE_FIELD(megatron.return_logits), "return_logits",
           "A GPT answers with its logits beside its losses, to the program that calls it. Left out: false.");
}

void add_hooks(FieldList& list) {
  list.add(ACCRUE_FIELD(megatron.custom_train_step_class), "custom_train_step_class",
           "Train step in place of the model's own: the name under which a program or plug-in library registers "
           "it.");
  list.add(ACCRUE_FIELD(megatron.custom_train_step_kwargs), "custom_train_step_kwargs",
           "What custom_train_step_class is made with, each \"name = value\".");
  list.add(ACCRUE_FIELD(megatron.custom_model_provider_function), "custom_model_provider_function",
           "Makes each chunk of the model: the name under which it is registered.");
  list.add(ACCRUE_FIELD(megatron.custom_prepare_model_function), "custom_prepare_model_function",
           "Wraps the chunks that custom_model_provider_function, which it needs, makes: the name under which it "
           "is registered.");
  list.add(ACCRUE_FIELD(megatron.custom_megatron_datasets_provider_function),
           "custom_megatron_datasets_provider_function",
           "Makes the data for training, validation and test: the name under which it is registered.");
  list.add(ACCRUE_FIELD(megatron.custom_get_batch_function), "custom_get_batch_function",
           "Takes a batch from the data: the name under which it is registered.");
  list.add(ACCRUE_FIELD(megatron.custom_loss_function), "custom_loss_function",
           "The loss in place of the model's own: the name under which it is registered.");
  list.add(ACCRUE_FIELD(megatron.other_megatron_args), "other_megatron_args",
           "Further arguments of Megatron-LM, each \"name = value\"; they win over all fields above.");
}

}  // namespace

void add_megatron_fields(FieldList& list) {
  const std::size_t first = list.fields.size();
  add_layout(list);
  add_schedule(list);
  add_data_and_groups(list);
  add_reports(list);
  add_hooks(list);
  for (std::size_t i = first; i < list.fields.size(); ++i)
    list.fields[i].aliases.push_back({"Accelerate", list.fields[i].name()});
}

}  // namespace accrue::field_detail
