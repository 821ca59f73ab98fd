// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/upstream_defects.h"

#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/choice_names.h"
#include "accrue/run/forecast.h"
#include "accrue/run/megatron_arguments.h"
#include "accrue/run/megatron_lowering.h"
#include "accrue/run/model_share.h"
#include "json_text.h"
#include "memory_estimate.h"
#include "published_forms.h"
#include "spec_text.h"

namespace accrue {

namespace {

using Integer = std::int64_t;

constexpr std::string_view accelerate = "Accelerate 1.9, Megatron-LM plug-in";
constexpr std::string_view megatron_core = "Megatron-LM core 0.12";

constexpr UpstreamDefect defects[] = {
    {.id = "U1",
     .system = "Accelerate after 1.9, Megatron-LM plug-in",
     .title = "Recomputation does not follow its field",
     .upstream = "recompute_activations no longer reaches Megatron-LM: whole blocks are recomputed by default, and the "
                 "default of the context-parallel size is 2.",
     .here = "The field always decides: the attention alone, or nothing.",
     .setting = "parallel.recompute=full"},
    {.id = "U2",
     .system = accelerate,
     .title = "The schedule is too long",
     .upstream = "train_iters is total_num_steps divided by the replicas, although each step takes num_micro_batches "
                 "micro-batches from the loader.",
     .here = "The schedule ends with the updates that the plan counts."},
    {.id = "U3",
     .system = accelerate,
     .title = "Lengths in samples are lost",
     .upstream = "train_samples and lr_warmup_samples are overwritten, and without a scheduler object nothing of the "
                 "schedule's fields arrives.",
     .here = "Every field of the schedule acts."},
    {.id = "U4",
     .system = accelerate,
     .title = "seq_length alone is replaced by None",
     .upstream = "For GPT-2 and BERT seq_length is overwritten by the encoder's or decoder's length, which is None.",
     .here = "seq_length holds; another length for the same sequence is refused."},
    {.id = "U5",
     .system = accelerate,
     .title = "All logging options crash",
     .upstream = "set_all_logging_options switches the norm of the parameters on, whose code reads a member that does "
                 "not exist.",
     .here = "The class logs the norm of the parameters."},
    {.id = "U6",
     .system = accelerate,
     .title = "Logits are averaged",
     .upstream = "In training, return_logits answers with the mean of the micro-batches' logits.",
     .here = "Logits are concatenated, a row a sample."},
    {.id = "U7",
     .system = accelerate,
     .title = "Custom train steps do not fit",
     .upstream = "The documented train step has another signature than the call that makes it.",
     .here = "One interface, AbstractTrainStep, for built-in and custom steps."},
    {.id = "U8",
     .system = accelerate,
     .title = "Custom preparation does not fit",
     .upstream = "With custom_prepare_model_function the optimizer is made with positional arguments of an older "
                 "Megatron-LM.",
     .here = "The function returns the chunks; they are reduced and updated as any others."},
    {.id = "U9",
     .system = accelerate,
     .title = "A short last batch is ragged",
     .upstream = "The last batch of an epoch is cut into micro-batches that are empty or of other shapes.",
     .here = "The tail of an epoch is what accumulation.tail says, with true sizes."},
    {.id = "U10",
     .system = accelerate,
     .title = "BERT with several labels fails",
     .upstream = "The loss of a BERT with num_labels above 1 reads an attribute that does not exist.",
     .here = "Cross entropy over the labels."},
    {.id = "U11",
     .system = accelerate,
     .title = "Labels of a loader are ignored",
     .upstream = "A GPT that reads a loader takes neither its labels nor its attention mask, so padding is trained on.",
     .here = "Both are honoured; a label of -100 takes no part."},
    {.id = "U12",
     .system = megatron_core,
     .title = "Label smoothing counts the wrong vocabulary",
     .upstream =
         "With label smoothing, the cross entropy over tensor ranks takes the rank's part of the vocabulary for "
         "the whole.",
     .here = "model.label_smoothing counts the whole vocabulary, whatever the layout."},
    {.id = "U13",
     .system = megatron_core,
     .title = "Cross entropy of gathered logits",
     .upstream = "Where the output is gathered first, the loss is larger by log(tensor ranks), and its gradient wrong.",
     .here = "The loss is taken of divided logits alone."},
    {.id = "U15",
     .system = megatron_core,
     .title = "Padded rows of the vocabulary are trained",
     .upstream =
         "Rows that pad the vocabulary take part in the softmax, and their number depends on the tensor ranks, so "
         "two layouts are two models.",
     .here = "Padded rows take no part, and their number does not depend on the layout.",
     .setting = "model.vocabulary_padding=megatron"},
    {.id = "U16",
     .system = accelerate,
     .title = "Adam becomes AdamW",
     .upstream = "An Adam whose decay is part of the gradient silently becomes AdamW; dampening and nesterov of an SGD "
                 "are lost.",
     .here = "optimizer.kind says which of the two it is."},
    {.id = "U17",
     .system = "Megatron Bridge",
     .title = "Iterations are stretched by a ramp-up",
     .upstream = "Warm-up and decay in iterations are converted by the full batch, although first updates are smaller.",
     .here = "Iterations with rampup_batch_size are refused."},
    {.id = "U18",
     .system = accelerate,
     .title = "Data start anew after load_state",
     .upstream = "consumed_samples is read before load_state restores the counters, so the user must pass the same "
                 "numbers by hand.",
     .here = "The place in the data comes from the checkpoint."},
    {.id = "arguments",
     .system = "Accelerate after 1.12, Megatron-LM plug-in",
     .title = "Fields that Accrue has one answer to",
     .upstream =
         "attention_backend, attention_softmax_in_fp32, context_parallel_size (2), expert_model_parallel_size, "
         "expert_tensor_parallel_size, decoder_last_pipeline_num_layers, use_rotary_position_embeddings (true), "
         "use_precision_aware_optimizer, optimizer_cpu_offload, overlap_cpu_optimizer_d2h_h2d, "
         "use_custom_fsdp, no_load_optim, no_save_optim and num_workers (2) are choices.",
     .here =
         "In other_megatron_args they are refused by name unless they ask for what Accrue does anyway: no context or "
         "expert ranks, learned positions, whole checkpoints, num_workers of 0."},
    {.id = "scheduler_load",
     .system = megatron_core,
     .title = "A load compares a part of the schedule",
     .upstream =
         "A load compares the peak, the lowest rate, the warm-up, the length and the style of the schedule, and "
         "the weight decay; the first rate of a warm-up and the tail of a WSD are the run's, whoever wins.",
     .here = "An Accelerator compares these, too. In a run the two arguments that say who wins change nothing: a "
             "resumed run has the schedule that it was saved with, and a branch names each key that it changes."},
    {.id = "buckets",
     .system = megatron_core,
     .title = "Buckets are as large as a model",
     .upstream = "A bucket of gradients closes at 40,000,000 numbers, or 1,000,000 a replica where that is more, and "
                 "never where nothing overlaps, on later stages and on later chunks. It ends after a whole parameter; "
                 "with a distributed optimizer on d replicas it ends at a multiple of lcm(d, 128) numbers, and a "
                 "parameter begins at one of 64.",
     .here = "A bucket has parallel.bucket_mb on every stage and chunk and may end inside a parameter, at a multiple "
             "of 16 numbers, with ZeRO of 16 d; a parameter begins at one of 16."},
    {.id = "random_streams",
     .system = megatron_core,
     .title = "Streams of random numbers run on",
     .upstream = "Dropout draws from streams that begin at seed + 100 a stage, + 10 a replica under "
                 "data_parallel_random_init, and + 2718 + the tensor rank for what tensor ranks hold parts of; each "
                 "goes on where the last micro-batch left it.",
     .here = "The streams have the same uses. Each is keyed anew for a micro-step, by run.seed, its number, the part "
             "of the model and the tensor rank, so what is drawn depends on nothing that came before."},
    {.id = "batch_broadcast",
     .system = megatron_core,
     .title = "One tensor rank reads",
     .upstream = "The first tensor rank reads each batch and broadcasts it to the others.",
     .here = "Tensor ranks read for themselves, by the batch's place in the plan. The first batch of a run, and all of "
             "a plug-in library's data, are compared."},
    {.id = "activations",
     .system = "Megatron-LM, paper on recomputation",
     .title = "Activations by one table",
     .upstream = "The published table counts the activations of a block as s b h (34 + 5 a s / h) bytes: 16-bit "
                 "numbers, dropout, and scores of attention that are kept.",
     .here = "The plan counts the tensors that each block keeps, in the type of the model."},
    {.id = "zero_bytes",
     .system = megatron_core,
     .title = "Bytes of a sharded optimizer",
     .upstream = "With a distributed optimizer on d replicas a parameter takes 4 + 16 / d bytes in float16, 6 + 12 / d "
                 "in bfloat16 and 8 + 8 / d in float32.",
     .here = "It takes 6 + 12 / d in both half types and 8 + 12 / d in float32, as a rank keeps a packed copy of its "
             "share. Of these, 4 are the gradient's, as the dialect accrue's accumulation.accumulation_dtype is "
             "float32: under parameter, as in the other dialects, a half type takes 4 + 12 / d, and "
             "float32_compensated adds 4."},
    {.id = "scheduler_state",
     .system = "llm-pytorch",
     .title = "The rate stays after a resume",
     .upstream = "A resumed run trains on at the rate of the resume, while its schedule goes on.",
     .here = "The schedule's rate acts from the first update.",
     .replay = Replay::scheduler_state},
    {.id = "clip_partial_sums",
     .system = "Colossal-AI",
     .title = "Partial sums are clipped",
     .upstream = "The running sum is clipped in every micro-step, and a norm of 0 zeroes it.",
     .here = "The window's gradient is clipped once; 0 switches clipping off.",
     .replay = Replay::clip_partial_sums},
    {.id = "drain_early",
     .system = "Colossal-AI",
     .title = "The last kept batch is lost",
     .upstream = "The loader ends one batch early.",
     .here = "Every kept batch is trained on.",
     .replay = Replay::drain_early},
    {.id = "adjust_scheduler",
     .system = "Accelerate 1.15",
     .title = "adjust_scheduler does nothing",
     .upstream =
         "The key is documented to move the schedule within windows, and has no effect; the replay gives it the "
         "documented one.",
     .here = "The key has no effect either.",
     .replay = Replay::adjust_scheduler},
    {.id = "zero_before_backward",
     .system = "Accelerate 1.15",
     .title = "Gradients are cleared too soon",
     .upstream = "Where zero_grad stands before backward in the loop, the boundary clears what the window has summed.",
     .here = "Gradients are cleared after the update.",
     .replay = Replay::zero_before_backward},
    {.id = "restart_count",
     .system = "MMEngine 0.10.7",
     .title = "A resume counts from 0",
     .upstream = "A resumed run counts its micro-steps from 0 towards the same max_iters.",
     .here = "The count goes on.",
     .replay = Replay::restart_count},
    {.id = "narrow_no_sync",
     .system = "llm-pytorch, Colossal-AI, MMEngine",
     .title = "Every micro-step reduces",
     .upstream = "no_sync covers the forward or the backward alone, so gradients are exchanged in every micro-step.",
     .here = "Gradients are exchanged once a window.",
     .replay = Replay::narrow_no_sync},
    {.id = "FusedLAMB",
     .system = "Colossal-AI",
     .title = "FusedLAMB overwrites gradients",
     .upstream = "A step of FusedLAMB leaves its update in the place of the gradients.",
     .here = "Gradients stay what they are; the class in C++ has an option that overwrites them."},
};

struct Effect : DefectEffect {
  void none(std::string why) { sentence = std::move(why); }
  void some(std::string what) { concerns = true, sentence = std::move(what); }
};

std::string times(Integer count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : one.ends_with("ch") ? "es" : "s");
}

void megatron_effect(std::string_view id, const RunPlan& plan, Effect& effect) {
  const RunSpec& spec = plan.spec;
  const MegatronSpec& fields = spec.megatron;
  const Integer steps = spec.accumulation.steps;
  const Integer updates = plan.totals.updates;
  const bool gpt = spec.model.kind == ModelKind::gpt;
  if (id == "U1") {
    const bool blocks = is_transformer(spec.model.kind) && spec.model.layers > 0;
    effect.replayed = blocks && spec.parallel.recompute == RecomputeKind::full;
    // Off would not bring the recomputation of the attention back.
    effect.can_replay = blocks && !fields.recompute_activations && spec.parallel.recompute != RecomputeKind::selective;
    if (effect.replayed || !blocks)
      return effect.none("Nothing: whole blocks are recomputed here, too, or the model has none.");
    return effect.some(
        fmt::format("Backward would recompute all {} whole, in place of {}.", times(spec.model.layers, "block"),
                    spec.parallel.recompute == RecomputeKind::selective ? "their attention" : "nothing"));
  }
  if (id == "U2") {
    if (steps == 1) return effect.none("Nothing: a window has one micro-step.");
    return effect.some(fmt::format("The schedule's horizon would be {} in place of {}, as N is {}.",
                                   times(updates * steps, "update"), updates, steps));
  }
  if (id == "U3") {
    if (fields.train_samples)
      return effect.some(fmt::format("train_samples = {} would be lost.", *fields.train_samples));
    if (fields.lr_warmup_samples)
      return effect.some(fmt::format("lr_warmup_samples = {} would be lost.", *fields.lr_warmup_samples));
    return effect.none("Nothing: no length is given in samples.");
  }
  if (id == "U4") {
    const bool alone = fields.seq_length && !fields.encoder_seq_length && !fields.decoder_seq_length;
    if (!alone || spec.model.kind == ModelKind::t5) return effect.none("Nothing: seq_length is not given alone.");
    return effect.some(fmt::format("The length {} would be lost.", *fields.seq_length));
  }
  if (id == "U5") {
    if (!fields.set_all_logging_options.value_or(false)) return effect.none("Nothing: the option is off.");
    return effect.some(fmt::format("The run would end at the first of its {}.", times(updates, "update")));
  }
  if (id == "U6") {
    if (!fields.return_logits.value_or(false)) return effect.none("Nothing: no logits are returned.");
    if (steps == 1) return effect.none("Nothing: a window has one micro-step.");
    return effect.some(fmt::format("{} of logits would become their mean, {} rows.", times(steps, "micro-batch"),
                                   spec.accumulation.micro_batch));
  }
  if (id == "U7" || id == "U8") {
    const bool custom =
        id == "U7" ? fields.custom_train_step_class.has_value() : fields.custom_prepare_model_function.has_value();
    if (!custom) return effect.none("Nothing: the field is left out.");
    return effect.some("The call would fail.");
  }
  if (id == "U9") {
    const Integer tail = plan.tail_micro_steps;
    if (tail == 0) return effect.none("Nothing: the micro-batches of an epoch fill its windows.");
    return effect.some(
        fmt::format("The last {} of an epoch would be cut into {} ragged ones.", times(tail, "micro-batch"), steps));
  }
  if (id == "U10") return effect.none("Nothing: a run trains no fine-tuning head; the class in C++ does.");
  if (id == "U11") {
    if (spec.data.labels.empty()) return effect.none("Nothing: no sample of these data is padded.");
    return effect.some("Labels of -100 would be trained on.");
  }
  if (id == "U12") {
    const Integer ranks = spec.parallel.tensor, classes = classes_of(spec.model, ranks);
    if (spec.model.label_smoothing == 0.0) return effect.none("Nothing: the losses are not smoothed.");
    if (ranks == 1) return effect.none("Nothing: one rank has the whole vocabulary.");
    return effect.some(fmt::format("Targets would be smoothed over {} classes in place of {}.",
                                   padded_vocabulary(spec.model, ranks) / ranks, classes));
  }
  if (id == "U13")
    return effect.none(
        fmt::format("Nothing: no loss of this run has it, on {} or one.", times(spec.parallel.tensor, "tensor rank")));
  if (id == "U15") {
    if (!is_transformer(spec.model.kind))
      return effect.none("Nothing: the model has no vocabulary that is divided here.");
    ModelSpec padded = spec.model;
    padded.vocabulary_padding = VocabularyPadding::megatron;
    constexpr Integer usual_multiple = 128;  // make_vocab_size_divisible_by where it is left out
    effect.replayed = spec.model.vocabulary_padding == VocabularyPadding::megatron;
    if (!effect.replayed) padded.vocabulary_multiple = std::max(usual_multiple, spec.model.vocabulary_multiple);
    const Integer rows = classes_of(padded, spec.parallel.tensor);
    effect.can_replay = true;
    if (rows == spec.model.vocabulary)
      return effect.none(
          fmt::format("Nothing: {} rows need no padding on {}.", rows, times(spec.parallel.tensor, "tensor rank")));
    return effect.some(fmt::format("The softmax would count {} classes in place of {}.", rows, spec.model.vocabulary));
  }
  if (id == "U16") {
    const OptimizerSpec& optimizer = spec.optimizer;
    if (optimizer.kind == OptimizerKind::adam) {
      if (optimizer.weight_decay == 0.0) return effect.none("Nothing: without weight decay the two are the same.");
      return effect.some(fmt::format("The decay of {} would be taken from the weights and not be part of the gradient.",
                                     spec_detail::number_text(optimizer.weight_decay)));
    }
    if (optimizer.kind == OptimizerKind::fused_sgd && (optimizer.nesterov || optimizer.dampening != 0.0))
      return effect.some("Dampening and nesterov would be lost.");
    return effect.none("Nothing: the optimizer is not Adam with its decay in the gradient.");
  }
  if (id == "U17") {
    if (spec.accumulation.rampup.empty()) return effect.none("Nothing: updates have their full size from the start.");
    return effect.some(
        fmt::format("A warm-up of so many updates would be converted by {} samples an update, although "
                    "the first has {}.",
                    plan.global_batch, spec.accumulation.rampup.front()));
  }
  if (id == "U18") {
    const bool given = !spec.data.consumed_samples.empty() || fields.consumed_samples;
    if (!given && spec.checkpoint.every_updates == 0) return effect.none("Nothing unless the run is resumed.");
    return effect.some(fmt::format(
        "A resumed run would read the data from {} again.",
        given ? "sample " + std::to_string(spec.data.consumed_samples.empty() ? fields.consumed_samples->front()
                                                                              : spec.data.consumed_samples.front())
              : "the start"));
  }
  if (id == "arguments") {
    std::string given;
    std::vector<Finding> refused;
    for (const auto& each :
         read_megatron_arguments(fields.other_megatron_args.value_or(std::vector<std::string>{}), refused))
      if (!each.argument->only.empty()) given += (given.empty() ? "" : ", ") + std::string(each.argument->name);
    if (given.empty()) return effect.none("Nothing: other_megatron_args has none of them.");
    return effect.none(fmt::format("Nothing: what is given asks for what is so here, {}.", given));
  }
  if (id == "scheduler_load") return effect.none("Nothing: a run's own schedule goes on, or that of its branch.");
  if (id == "buckets") {
    if (spec.parallel.data == 1) return effect.none("Nothing: one replica reduces nothing.");
    const Integer there = std::max<Integer>(40'000'000, 1'000'000 * spec.parallel.data);
    const std::string here =
        cost_is_known(spec) ? times(plan.gradient_buckets, "bucket") : "as many buckets as the library's model fills";
    return effect.some(fmt::format("A bucket would have {} numbers, and here there are {}.", there, here));
  }
  if (id == "random_streams") {
    if (spec.model.dropout == 0.0) return effect.none("Nothing: a model without dropout draws nothing in training.");
    return effect.some(fmt::format("Other elements would be dropped, {} % of them as here.",
                                   spec_detail::number_text(100.0 * spec.model.dropout)));
  }
  if (id == "batch_broadcast") {
    const Integer ranks = spec.parallel.tensor;
    if (ranks == 1) return effect.none("Nothing: one tensor rank reads.");
    return effect.some(fmt::format("Each of {} would broadcast its batch to {}.", times(steps, "micro-step"),
                                   times(ranks - 1, "tensor rank")));
  }
  if (id == "activations") {
    if (!gpt) return effect.none("Nothing: the table is of a GPT.");
    return effect.some(fmt::format("A block would be counted as {:.0f} bytes, undivided.",
                                   published_block_bytes(spec.model, plan.order.micro_batch, {})));
  }
  if (id == "zero_bytes") {
    const Dtype dtype = spec.model.dtype;
    if (spec.parallel.zero == 0) return effect.none("Nothing: the optimizer is not sharded.");
    if (dtype == Dtype::float64) return effect.none("Nothing is published of this number type.");
    const double share = 1.0 / static_cast<double>(spec.parallel.data);
    const double there = dtype == Dtype::float16    ? 4 + 16 * share
                         : dtype == Dtype::bfloat16 ? 6 + 12 * share
                                                    : 8 + 8 * share;
    const Integer whole = dtype_bytes(dtype) + gradient_bytes(dtype, plan.knobs.accumulation_dtype);
    const double here = static_cast<double>(whole) + 12 * share;
    if (here == there) return effect.none(fmt::format("Nothing: a parameter takes {:g} bytes there, too.", here));
    return effect.some(fmt::format("A parameter would take {:g} bytes in place of {:g}.", there, here));
  }
  if (spec.optimizer.kind != OptimizerKind::fused_lamb) return effect.none("Nothing: the optimizer is not FusedLAMB.");
  effect.none("Nothing in a run, whose gradients are cleared after each update.");
}

void replay_effect(Replay defect, const RunPlan& plan, Effect& effect) {
  const RunSpec& spec = plan.spec;
  const Dialect dialect = spec.accumulation.dialect;
  effect.can_replay = has_defect(dialect, defect);
  effect.replayed = plan.knobs.replays(defect);
  const Integer steps = spec.accumulation.steps;
  if (!effect.can_replay)
    return effect.none(fmt::format("Nothing: the dialect is {}, whose original does not have it.", to_name(dialect)));
  switch (defect) {
    case Replay::narrow_no_sync:
      if (steps == 1 || spec.parallel.data == 1) return effect.none("Nothing: a window reduces once, or not at all.");
      return effect.some(fmt::format("A window would reduce {} in place of once.", times(steps, "time")));
    case Replay::clip_partial_sums:
      if (spec.optimizer.clip_norm == 0.0) return effect.some("A norm of 0 would zero every gradient.");
      return effect.some(fmt::format("Each window would be clipped {} in place of once.", times(steps, "time")));
    case Replay::drain_early:
      return effect.some("Each epoch would lose one more batch.");
    case Replay::adjust_scheduler:
      return effect.some(fmt::format("The schedule would move in each of a window's {}.", times(steps, "micro-step")));
    case Replay::zero_before_backward:
      if (steps == 1) return effect.none("Nothing: a window has one micro-step.");
      return effect.some(fmt::format("An update would use the last of {} alone.", times(steps, "micro-step")));
    case Replay::scheduler_state:
    case Replay::restart_count:
      return effect.none("Nothing unless the run is resumed.");
  }
}

Json json_of(const UpstreamDefect& defect, const DefectEffect& effect) {
  return {{"id", defect.id},
          {"system", defect.system},
          {"title", defect.title},
          {"upstream", defect.upstream},
          {"here", defect.here},
          {"concerns", effect.concerns},
          {"can_replay", effect.can_replay},
          {"replayed", effect.replayed},
          {"effect", effect.sentence}};
}

}  // namespace

std::span<const UpstreamDefect> upstream_defects() {
  return defects;
}

DefectEffect effect_of(const UpstreamDefect& defect, const RunPlan& plan) {
  Effect effect;
  if (defect.replay)
    replay_effect(*defect.replay, plan, effect);
  else
    megatron_effect(defect.id, plan, effect);
  return effect;
}

std::string replay_setting(const UpstreamDefect& defect, const RunSpec& spec, bool on) {
  if (!defect.replay) {
    if (defect.setting.empty()) return {};
    if (on) return std::string(defect.setting);
    return defect.id == "U1" ? "parallel.recompute=none" : "model.vocabulary_padding=fixed";
  }
  std::vector<std::string> names = spec.accumulation.replay;
  const std::string name(to_name(*defect.replay));
  std::erase(names, name);
  if (on) names.push_back(name);
  return "accumulation.replay=" + format_value(names);
}

std::string differences_report(const RunPlan& plan) {
  std::string out = "What the originals would do otherwise with this spec\n";
  for (const UpstreamDefect& defect : defects) {
    const DefectEffect effect = effect_of(defect, plan);
    out += fmt::format("\n{}  {} ({})\n    there: {}\n    here: {}\n    {}{}\n", defect.id, defect.title, defect.system,
                       defect.upstream, defect.here, effect.concerns ? "this spec: " : "", effect.sentence);
    if (effect.replayed)
      out += "    This run does as upstream.\n";
    else if (effect.can_replay)
      out += fmt::format("    --set '{}' does as upstream.\n", replay_setting(defect, plan.spec, true));
  }
  return out;
}

std::string differences_json(const RunPlan& plan) {
  Json list = Json::array();
  for (const UpstreamDefect& defect : defects) list.push_back(json_of(defect, effect_of(defect, plan)));
  return json_text(list, 2);
}

}  // namespace accrue
