// SPDX-License-Identifier: Apache-2.0
// The schema of other_megatron_args: one row per argument, and the reader of "name = value".
#include "accrue/run/megatron/megatron_arguments.h"

#include <algorithm>
#include <set>

#include "accrue/run/megatron/megatron_fields.h"
#include "megatron_values.h"
#include "missing_keys.h"
#include "spec_text.h"
#include "trimmed.h"

namespace accrue {

namespace {

constexpr auto boolean = FieldType::boolean;
constexpr auto integer = FieldType::integer;
constexpr auto real = FieldType::real;
constexpr auto text = FieldType::text;
constexpr auto integers = FieldType::integers;
constexpr auto texts = FieldType::texts;
constexpr bool in_program = true;

constexpr MegatronArgument of_field(std::string_view name, FieldType type, std::string_view field = {}) {
  return {.name = name, .type = type, .field = field.empty() ? name : field};
}
constexpr MegatronArgument of_key(std::string_view name, FieldType type, std::string_view key, bool read = false) {
  return {.name = name, .type = type, .key = key, .in_program = read};
}
constexpr MegatronArgument just(std::string_view name, FieldType type, std::string_view only, std::string_view why) {
  return {.name = name, .type = type, .only = only, .why = why};
}
constexpr MegatronArgument of_program(std::string_view name, FieldType type, std::string_view why) {
  return {.name = name, .type = type, .why = why, .in_program = in_program};
}

constexpr std::string_view whole_checkpoints =
    "a checkpoint always holds model, optimizer, schedule and random numbers together, and is read as a whole";
constexpr std::string_view schedule_of_runs =
    "load_state() of an Accelerator does by it; a resumed run has the schedule that it was saved with, and a branch "
    "names each key that it changes";
constexpr std::string_view tokenizer_of_data =
    "the .json file beside an indexed dataset says what made its tokens; accrue-run data build takes the tokenizer";
constexpr std::string_view no_experts = "no model has layers of experts";

constexpr MegatronArgument arguments[] = {
    // those for a field of the plug-in
    of_field("tensor_model_parallel_size", integer, "tp_degree"),
    of_field("pipeline_model_parallel_size", integer, "pp_degree"),
    of_field("num_micro_batches", integer),
    of_field("clip_grad", real, "gradient_clipping"),
    of_field("sequence_parallel", boolean, "sequence_parallelism"),
    of_field("recompute_activations", boolean),
    of_field("use_distributed_optimizer", boolean),
    of_field("pipeline_model_parallel_split_rank", integer),
    of_field("num_layers_per_virtual_pipeline_stage", integer),
    of_field("train_iters", integer),
    of_field("train_samples", integer),
    of_field("weight_decay_incr_style", text),
    of_field("start_weight_decay", real),
    of_field("end_weight_decay", real),
    of_field("lr_decay_style", text),
    of_field("lr_decay_iters", integer),
    of_field("lr_decay_samples", integer),
    of_field("lr_warmup_iters", integer),
    of_field("lr_warmup_samples", integer),
    of_field("lr_warmup_fraction", real),
    of_field("min_lr", real),
    of_field("consumed_samples", integers),
    of_field("lr_mult", real),
    of_field("megatron_dataset_flag", boolean),
    of_field("seq_length", integer),
    of_field("encoder_seq_length", integer),
    of_field("decoder_seq_length", integer),
    of_field("tensorboard_dir", text),
    of_field("eval_iters", integer),
    of_field("eval_interval", integer),
    of_field("return_logits", boolean),
    // the update
    of_key("micro_batch_size", integer, "accumulation.micro_batch"),
    of_key("global_batch_size", integer, "accumulation.steps"),
    of_key("rampup_batch_size", integers, "accumulation.rampup"),
    of_key("calculate_per_token_loss", boolean, "accumulation.normalizer", in_program),
    of_key("optimizer", text, "optimizer.kind"),
    of_key("lr", real, "optimizer.lr"),
    of_key("weight_decay", real, "optimizer.weight_decay"),
    of_key("adam_beta1", real, "optimizer.beta1"),
    of_key("adam_beta2", real, "optimizer.beta2"),
    of_key("adam_eps", real, "optimizer.eps"),
    of_key("sgd_momentum", real, "optimizer.momentum"),
    of_key("decoupled_lr", real, "optimizer.decoupled_lr", in_program),
    of_key("decoupled_min_lr", real, "optimizer.decoupled_min_lr", in_program),
    of_key("lr_warmup_init", real, "schedule.init_lr", in_program),
    of_key("lr_wsd_decay_style", text, "schedule.decay_tail", in_program),
    of_key("lr_wsd_decay_iters", integer, "schedule.decay_fraction", in_program),
    of_key("lr_wsd_decay_samples", integer, "schedule.decay_fraction", in_program),
    of_key("fp16", boolean, "model.dtype", in_program),
    of_key("bf16", boolean, "model.dtype", in_program),
    of_key("loss_scale", real, "optimizer.loss_scale", in_program),
    of_key("initial_loss_scale", real, "optimizer.loss_scale", in_program),
    of_key("min_loss_scale", real, "optimizer.min_loss_scale", in_program),
    of_key("loss_scale_window", integer, "optimizer.loss_scale_window", in_program),
    of_key("hysteresis", integer, "optimizer.loss_scale_hysteresis", in_program),
    // the model
    of_key("num_layers", integer, "model.layers"),
    of_key("hidden_size", integer, "model.width"),
    of_key("ffn_hidden_size", integer, "model.width"),
    of_key("num_attention_heads", integer, "model.heads"),
    of_key("decoder_num_layers", integer, "model.decoder_layers"),
    of_key("max_position_embeddings", integer, "model.context"),
    of_key("vocab_size", integer, "model.vocabulary"),
    of_key("make_vocab_size_divisible_by", integer, "model.vocabulary_multiple"),
    of_key("hidden_dropout", real, "model.dropout", in_program),
    of_key("attention_dropout", real, "model.dropout", in_program),
    // the ranks
    of_key("recompute_granularity", text, "parallel.recompute", in_program),
    of_key("recompute_method", text, "parallel.recompute_method", in_program),
    of_key("recompute_num_layers", integer, "parallel.recompute_layers", in_program),
    of_key("distribute_saved_activations", boolean, "parallel.distribute_saved_activations", in_program),
    of_key("microbatch_group_size_per_virtual_pipeline_stage", integer, "parallel.pipeline_group"),
    of_key("overlap_grad_reduce", boolean, "parallel.overlap_grad_reduce", in_program),
    of_key("overlap_param_gather", boolean, "parallel.overlap_param_gather", in_program),
    of_key("distributed_backend", text, "parallel.backend"),
    of_key("distributed_timeout_minutes", integer, "launch.collective_timeout_s"),
    // data, evaluation, checkpoints
    of_key("data_path", texts, "data.paths"),
    of_key("train_data_path", texts, "data.paths"),
    of_key("split", text, "data.split"),
    of_key("valid_data_path", texts, "data.validation_paths"),
    of_key("data_cache_path", text, "data.cache"),
    of_key("dataloader_type", text, "data.sampler"),
    of_key("data_sharding", boolean, "data.sharding"),
    of_key("mask_prob", real, "data.mask_probability"),
    of_key("short_seq_prob", real, "data.short_sequence_probability"),
    of_key("reset_position_ids", boolean, "data.reset_positions", in_program),
    of_key("reset_attention_mask", boolean, "data.reset_attention", in_program),
    of_key("eod_mask_loss", boolean, "data.mask_end_of_document", in_program),
    of_key("seed", integer, "run.seed"),
    of_key("save_interval", integer, "checkpoint.every_updates"),
    of_key("log_params_norm", boolean, "run.parameter_norm", in_program),
    of_key("log_num_zeros_in_grad", boolean, "run.gradient_zeros", in_program),
    of_key("timing_log_level", integer, "run.timer_level", in_program),
    // effects on an Accelerator's load_state()
    of_program("use_checkpoint_opt_param_scheduler", boolean, schedule_of_runs),
    of_program("override_opt_param_scheduler", boolean, schedule_of_runs),
    // fixed values of the program
    just("context_parallel_size", integer, "1",
         "ranks cannot share one sequence in the attention: no rank passes keys and values on to the next"),
    just("expert_model_parallel_size", integer, "1", no_experts),
    just("expert_tensor_parallel_size", integer, "1", no_experts),
    just("num_experts", integer, "0", no_experts),
    just("step_batch_size_schedule", text, "-",
         "rampup_batch_size lets updates grow evenly; outside the plug-in accumulation.length_schedule sets the "
         "micro-steps from an update on, with accumulation.group_length = by_update"),
    just("decoder_last_pipeline_num_layers", integer, "-",
         "every stage holds as many layers as the others; pp_degree must divide them"),
    just("encoder_pipeline_model_parallel_size", integer, "0", "the split is pipeline_model_parallel_split_rank"),
    just("use_rotary_position_embeddings", boolean, "false", "positions are learned, as GPT-2, BERT and T5 here do"),
    just("attention_softmax_in_fp32", boolean, "true",
         "the softmax of the attention is computed in float32, whatever half type the model has"),
    just("attention_backend", text, "auto", "there is one implementation of the attention, chosen by the device"),
    just("use_precision_aware_optimizer", boolean, "false",
         "the optimizer's state is float32, or float64 with the model"),
    just("optimizer_cpu_offload", boolean, "false",
         "it needs use_precision_aware_optimizer, which is not offered; optimizer.kind = HybridAdam keeps states in "
         "files"),
    just("overlap_cpu_optimizer_d2h_h2d", boolean, "false",
         "there is no optimizer_cpu_offload whose copies could overlap"),
    just("use_custom_fsdp", boolean, "false", "parameters are not sharded; use_distributed_optimizer shards the state"),
    just("no_load_optim", boolean, "false", whole_checkpoints),
    just("no_save_optim", boolean, "false", whole_checkpoints),
    just("mmap_bin_files", boolean, "true", "indexed datasets are always mapped"),
    just("mock_data", boolean, "false", "data.kind = synthetic makes data from a seed"),
    just("test_data_path", texts, "-",
         "a run reads no test samples; Accelerator in C++ takes them as its third loader"),
    just("num_workers", integer, "0", "a rank reads mapped files itself, and has no processes that read ahead"),
    just("position_embedding_type", text, "learned_absolute|absolute", "positions are learned"),
    just("attention_head_type", text, "multihead", "every head has keys and values of its own"),
    just("vocab_file", text, "-", tokenizer_of_data),
    just("merge_file", text, "-", tokenizer_of_data),
    just("untie_embeddings_and_output_weights", boolean, "false", "the output layer shares the token embedding"),
    just("normalization", text, "LayerNorm", "the models have layer norms"),
    just("swiglu", boolean, "false", "the inner layer of a block has one matrix and a GELU"),
    just("add_bias_linear", boolean, "true", "every linear layer has a bias"),
};

const std::string_view own_key = "megatron.other_megatron_args";

void refuse(std::vector<Finding>& findings, std::string message, std::string found, std::string expected = {}) {
  findings.push_back({.key = std::string(own_key),
                      .message = std::move(message),
                      .found = std::move(found),
                      .expected = std::move(expected)});
}

std::string type_text(FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return "true or false";
    case FieldType::integer:
      return "a whole number";
    case FieldType::real:
      return "a number";
    case FieldType::integers:
      return "a list of whole numbers";
    case FieldType::texts:
      return "a list of strings";
    default:
      return "a string";
  }
}

void refuse_unknown(std::string_view name, std::string_view assignment, std::vector<Finding>& findings) {
  const std::string quoted(name.substr(0, 60));
  if (find_megatron_field(spec_detail::folded(name)) != nullptr)
    return refuse(findings, quoted + " is a field of the plug-in and no argument of Megatron-LM",
                  std::string(assignment), "megatron." + spec_detail::folded(name));
  if (const auto missing = spec_detail::missing_parallelism(spec_detail::folded(name)); !missing.empty())
    return refuse(findings, quoted + " is not offered: " + std::string(missing), std::string(assignment));
  std::vector<std::string_view> names;
  for (const MegatronArgument& argument : arguments) names.push_back(argument.name);
  const std::string_view near = spec_detail::nearest_of(names, name);
  refuse(findings, quoted + " is not an argument of Megatron-LM that Accrue knows", std::string(assignment),
         near.empty() ? "an argument that \"accrue-run spec --megatron\" lists" : std::string(near));
}

bool is_offered(const MegatronArgument& argument, const SpecValue& value) {
  if (argument.only == "-") return false;
  std::string_view left = argument.only;
  while (!left.empty()) {
    const auto bar = std::min(left.find('|'), left.size());
    if (megatron_detail::parse_value(argument.type, left.substr(0, bar)) == value) return true;
    left.remove_prefix(std::min(bar + 1, left.size()));
  }
  return argument.only.empty();
}

}  // namespace

std::span<const MegatronArgument> megatron_arguments() {
  return arguments;
}

std::string constant_scale_conflict(std::span<const MegatronArgumentValue> arguments) {
  for (const std::string_view moves : {"initial_loss_scale", "min_loss_scale", "loss_scale_window", "hysteresis"})
    if (std::ranges::any_of(arguments, [&](const auto& each) { return each.argument->name == moves; }))
      return "is a constant scale, for which " + std::string(moves) + " has no use";
  return {};
}

const MegatronArgument* find_megatron_argument(std::string_view name) {
  const std::string wanted = spec_detail::folded(name);
  const auto* found = std::ranges::find(arguments, wanted, &MegatronArgument::name);
  return found == std::end(arguments) ? nullptr : found;
}

std::vector<MegatronArgumentValue> read_megatron_arguments(const std::vector<std::string>& assignments,
                                                           std::vector<Finding>& findings) {
  std::vector<MegatronArgumentValue> values;
  std::set<std::string_view> seen;
  for (const std::string& assignment : assignments) {
    const std::string_view shown = std::string_view(assignment).substr(0, 80);
    const auto equals = assignment.find('=');
    if (equals == std::string::npos) {
      refuse(findings, "has an argument without a value", std::string(shown), "name = value");
      continue;
    }
    const std::string_view name = trimmed(std::string_view(assignment).substr(0, equals));
    const MegatronArgument* argument = find_megatron_argument(name);
    if (argument == nullptr) {
      refuse_unknown(name, shown, findings);
      continue;
    }
    const std::string own(argument->name);
    if (!seen.insert(argument->name).second) {
      refuse(findings, "has " + own + " twice", std::string(shown), "each argument once");
      continue;
    }
    const auto value = megatron_detail::parse_value(argument->type, std::string_view(assignment).substr(equals + 1));
    if (!value) {
      refuse(findings, own + " has the wrong type", std::string(shown), type_text(argument->type));
    } else if (!is_offered(*argument, *value)) {
      const bool none = argument->only == "-";
      refuse(findings, own + " is not offered" + (none ? ": " : " with this value: ") + std::string(argument->why),
             std::string(shown), none ? "to leave it out" : std::string(argument->only));
    } else {
      values.push_back({argument, *value});
    }
  }
  return values;
}

}  // namespace accrue
