// SPDX-License-Identifier: Apache-2.0
#include "defect_effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/megatron/megatron_arguments.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/plan/forecast.h"
#include "memory_estimate.h"
#include "published_forms.h"
#include "spec_text.h"

namespace accrue {

namespace {

using Integer = std::int64_t;

DefectEffect nothing(std::string why) {
  return {.sentence = "Nothing" + std::move(why)};
}

DefectEffect something(std::string what) {
  return {.concerns = true, .sentence = std::move(what)};
}

std::string times(Integer count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : one.ends_with("ch") ? "es" : "s");
}

Integer steps_of_window(const RunPlan& plan) {
  return plan.spec.accumulation.steps;
}

DefectEffect whole_blocks_recomputed(const RunPlan& plan) {
  const RunSpec& spec = plan.spec;
  const RecomputeKind recompute = spec.parallel.recompute;
  const bool blocks = is_transformer(spec.model.kind) && spec.model.layers > 0;
  const bool replayed = blocks && recompute == RecomputeKind::full;
  DefectEffect effect =
      replayed || !blocks
          ? nothing(": whole blocks are recomputed here, too, or the model has none.")
          : something(fmt::format("Backward would recompute all {} whole, in place of {}.",
                                  times(spec.model.layers, "block"),
                                  recompute == RecomputeKind::selective ? "their attention" : "nothing"));
  effect.replayed = replayed;
  // Switching it off would not restore the recomputation of the attention.
  effect.can_replay = blocks && !spec.megatron.recompute_activations && recompute != RecomputeKind::selective;
  return effect;
}

DefectEffect schedule_too_long(const RunPlan& plan) {
  const Integer steps = steps_of_window(plan), updates = plan.totals.updates;
  if (steps == 1) return nothing(": a window has one micro-step.");
  return something(fmt::format("The schedule's horizon would be {} in place of {}, as N is {}.",
                               times(updates * steps, "update"), updates, steps));
}

DefectEffect samples_lost(const RunPlan& plan) {
  const MegatronSpec& fields = plan.spec.megatron;
  if (fields.train_samples) return something(fmt::format("train_samples = {} would be lost.", *fields.train_samples));
  if (fields.lr_warmup_samples)
    return something(fmt::format("lr_warmup_samples = {} would be lost.", *fields.lr_warmup_samples));
  return nothing(": no length is given in samples.");
}

DefectEffect length_lost(const RunPlan& plan) {
  const MegatronSpec& fields = plan.spec.megatron;
  const bool alone = fields.seq_length && !fields.encoder_seq_length && !fields.decoder_seq_length;
  if (!alone || plan.spec.model.kind == ModelKind::t5) return nothing(": seq_length is not given alone.");
  return something(fmt::format("The length {} would be lost.", *fields.seq_length));
}

DefectEffect logging_crashes(const RunPlan& plan) {
  if (!plan.spec.megatron.set_all_logging_options.value_or(false)) return nothing(": the option is off.");
  return something(fmt::format("The run would end at the first of its {}.", times(plan.totals.updates, "update")));
}

DefectEffect logits_averaged(const RunPlan& plan) {
  const Integer steps = steps_of_window(plan);
  if (!plan.spec.megatron.return_logits.value_or(false)) return nothing(": no logits are returned.");
  if (steps == 1) return nothing(": a window has one micro-step.");
  return something(fmt::format("{} of logits would become their mean, {} rows.", times(steps, "micro-batch"),
                               plan.spec.accumulation.micro_batch));
}

DefectEffect call_fails(bool made) {
  return made ? something("The call would fail.") : nothing(": the field is left out.");
}

DefectEffect custom_step_fails(const RunPlan& plan) {
  return call_fails(plan.spec.megatron.custom_train_step_class.has_value());
}

DefectEffect custom_preparation_fails(const RunPlan& plan) {
  return call_fails(plan.spec.megatron.custom_prepare_model_function.has_value());
}

DefectEffect ragged_tail(const RunPlan& plan) {
  if (plan.tail_micro_steps == 0) return nothing(": the micro-batches of an epoch fill its windows.");
  return something(fmt::format("The last {} of an epoch would be cut into {} ragged ones.",
                               times(plan.tail_micro_steps, "micro-batch"), steps_of_window(plan)));
}

DefectEffect fine_tuning_fails(const RunPlan&) {
  return nothing(": a run trains no fine-tuning head; the class in C++ does.");
}

DefectEffect padding_trained(const RunPlan& plan) {
  if (plan.spec.data.labels.empty()) return nothing(": no sample of these data is padded.");
  return something("Labels of -100 would be trained on.");
}

DefectEffect smoothed_over_part(const RunPlan& plan) {
  const ModelSpec& model = plan.spec.model;
  const Integer ranks = plan.spec.parallel.tensor;
  if (model.label_smoothing == 0.0) return nothing(": the losses are not smoothed.");
  if (ranks == 1) return nothing(": one rank has the whole vocabulary.");
  return something(fmt::format("Targets would be smoothed over {} classes in place of {}.",
                               padded_vocabulary(model, ranks) / ranks, classes_of(model, ranks)));
}

DefectEffect gathered_logits(const RunPlan& plan) {
  return nothing(
      fmt::format(": no loss of this run has it, on {} or one.", times(plan.spec.parallel.tensor, "tensor rank")));
}

DefectEffect padded_rows_trained(const RunPlan& plan) {
  ModelSpec padded = plan.spec.model;
  const Integer ranks = plan.spec.parallel.tensor, vocabulary = padded.vocabulary;
  if (!is_transformer(padded.kind)) return nothing(": the model has no vocabulary that is divided here.");
  constexpr Integer usual_multiple = 128;  // default of make_vocab_size_divisible_by
  const bool replayed = padded.vocabulary_padding == VocabularyPadding::megatron;
  padded.vocabulary_padding = VocabularyPadding::megatron;
  if (!replayed) padded.vocabulary_multiple = std::max(usual_multiple, padded.vocabulary_multiple);
  const Integer rows = classes_of(padded, ranks);
  DefectEffect effect =
      rows == vocabulary
          ? nothing(fmt::format(": {} rows need no padding on {}.", rows, times(ranks, "tensor rank")))
          : something(fmt::format("The softmax would count {} classes in place of {}.", rows, vocabulary));
  effect.replayed = replayed;
  effect.can_replay = true;
  return effect;
}

DefectEffect other_optimizer(const RunPlan& plan) {
  const OptimizerSpec& optimizer = plan.spec.optimizer;
  if (optimizer.kind == OptimizerKind::adam) {
    if (optimizer.weight_decay == 0.0) return nothing(": without weight decay the two are the same.");
    return something(fmt::format("The decay of {} would be taken from the weights and not be part of the gradient.",
                                 spec_detail::number_text(optimizer.weight_decay)));
  }
  if (optimizer.kind == OptimizerKind::fused_sgd && (optimizer.nesterov || optimizer.dampening != 0.0))
    return something("Dampening and nesterov would be lost.");
  return nothing(": the optimizer is not Adam with its decay in the gradient.");
}

DefectEffect rampup_stretches(const RunPlan& plan) {
  const auto& rampup = plan.spec.accumulation.rampup;
  if (rampup.empty()) return nothing(": updates have their full size from the start.");
  return something(
      fmt::format("A warm-up of so many updates would be converted by {} samples an update, although the first has {}.",
                  plan.global_batch, rampup.front()));
}

DefectEffect data_start_anew(const RunPlan& plan) {
  const auto& consumed = plan.spec.data.consumed_samples;
  const auto& given = plan.spec.megatron.consumed_samples;
  if (consumed.empty() && !given && plan.spec.checkpoint.every_updates == 0)
    return nothing(" unless the run is resumed.");
  std::string place = "the start";
  if (!consumed.empty())
    place = fmt::format("sample {}", consumed.front());
  else if (given)
    place = fmt::format("sample {}", given->front());
  return something(fmt::format("A resumed run would read the data from {} again.", place));
}

DefectEffect arguments_given(const RunPlan& plan) {
  std::string given;
  std::vector<Finding> refused;
  const auto& arguments = plan.spec.megatron.other_megatron_args;
  for (const auto& each : read_megatron_arguments(arguments.value_or(std::vector<std::string>{}), refused))
    if (!each.argument->only.empty()) given += (given.empty() ? "" : ", ") + std::string(each.argument->name);
  if (given.empty()) return nothing(": other_megatron_args has none of them.");
  return nothing(fmt::format(": what is given asks for what is so here, {}.", given));
}

DefectEffect schedule_of_load(const RunPlan&) {
  return nothing(": a run's own schedule goes on, or that of its branch.");
}

DefectEffect large_buckets(const RunPlan& plan) {
  if (plan.spec.parallel.data == 1) return nothing(": one replica reduces nothing.");
  const Integer there = std::max<Integer>(40'000'000, 1'000'000 * plan.spec.parallel.data);
  const std::string here = cost_is_known(plan.spec) ? times(plan.gradient_buckets, "bucket")
                                                    : "as many buckets as the library's model fills";
  return something(fmt::format("A bucket would have {} numbers, and here there are {}.", there, here));
}

DefectEffect other_dropout(const RunPlan& plan) {
  const double dropout = plan.spec.model.dropout;
  if (dropout == 0.0) return nothing(": a model without dropout draws nothing in training.");
  return something(
      fmt::format("Other elements would be dropped, {} % of them as here.", spec_detail::number_text(100.0 * dropout)));
}

DefectEffect batches_broadcast(const RunPlan& plan) {
  const Integer ranks = plan.spec.parallel.tensor;
  if (ranks == 1) return nothing(": one tensor rank reads.");
  return something(fmt::format("Each of {} would broadcast its batch to {}.",
                               times(steps_of_window(plan), "micro-step"), times(ranks - 1, "tensor rank")));
}

DefectEffect activations_by_table(const RunPlan& plan) {
  if (plan.spec.model.kind != ModelKind::gpt) return nothing(": the table is of a GPT.");
  return something(fmt::format("A block would be counted as {:.0f} bytes, undivided.",
                               published_block_bytes(plan.spec.model, plan.order.micro_batch, {})));
}

DefectEffect sharded_bytes(const RunPlan& plan) {
  const Dtype dtype = plan.spec.model.dtype;
  if (plan.spec.parallel.zero == 0) return nothing(": the optimizer is not sharded.");
  if (dtype == Dtype::float64) return nothing(" is published of this number type.");
  const double share = 1.0 / static_cast<double>(plan.spec.parallel.data);
  const double there = dtype == Dtype::float16    ? 4 + 16 * share
                       : dtype == Dtype::bfloat16 ? 6 + 12 * share
                                                  : 8 + 8 * share;
  const Integer whole = dtype_bytes(dtype) + gradient_bytes(dtype, plan.knobs.accumulation_dtype);
  const double here = static_cast<double>(whole) + 12 * share;
  if (here == there) return nothing(fmt::format(": a parameter takes {:g} bytes there, too.", here));
  return something(fmt::format("A parameter would take {:g} bytes in place of {:g}.", there, here));
}

DefectEffect gradients_overwritten(const RunPlan& plan) {
  if (plan.spec.optimizer.kind != OptimizerKind::fused_lamb) return nothing(": the optimizer is not FusedLAMB.");
  return nothing(" in a run, whose gradients are cleared after each update.");
}

DefectEffect only_after_resume(const RunPlan&) {
  return nothing(" unless the run is resumed.");
}

DefectEffect sums_clipped(const RunPlan& plan) {
  if (plan.spec.optimizer.clip_norm == 0.0) return something("A norm of 0 would zero every gradient.");
  return something(
      fmt::format("Each window would be clipped {} in place of once.", times(steps_of_window(plan), "time")));
}

DefectEffect last_batch_lost(const RunPlan&) {
  return something("Each epoch would lose one more batch.");
}

DefectEffect schedule_moves_within(const RunPlan& plan) {
  return something(
      fmt::format("The schedule would move in each of a window's {}.", times(steps_of_window(plan), "micro-step")));
}

DefectEffect window_cleared(const RunPlan& plan) {
  if (steps_of_window(plan) == 1) return nothing(": a window has one micro-step.");
  return something(
      fmt::format("An update would use the last of {} alone.", times(steps_of_window(plan), "micro-step")));
}

DefectEffect every_step_reduces(const RunPlan& plan) {
  const Integer steps = steps_of_window(plan);
  if (steps == 1 || plan.spec.parallel.data == 1) return nothing(": a window reduces once, or not at all.");
  return something(fmt::format("A window would reduce {} in place of once.", times(steps, "time")));
}

constexpr DefectMeaning meanings[] = {
    {"U1", whole_blocks_recomputed, {}},
    {"U2", schedule_too_long, {}},
    {"U3", samples_lost, {}},
    {"U4", length_lost, {}},
    {"U5", logging_crashes, {}},
    {"U6", logits_averaged, {}},
    {"U7", custom_step_fails, {}},
    {"U8", custom_preparation_fails, {}},
    {"U9", ragged_tail, {}},
    {"U10", fine_tuning_fails, {}},
    {"U11", padding_trained, {}},
    {"U12", smoothed_over_part, {}},
    {"U13", gathered_logits, {}},
    {"U15", padded_rows_trained, {}},
    {"U16", other_optimizer, {}},
    {"U17", rampup_stretches, {}},
    {"U18", data_start_anew, {}},
    {"arguments", arguments_given, {}},
    {"scheduler_load", schedule_of_load, {}},
    {"buckets", large_buckets, {}},
    {"random_streams", other_dropout, {}},
    {"batch_broadcast", batches_broadcast, {}},
    {"activations", activations_by_table, {}},
    {"zero_bytes", sharded_bytes, {}},
    {"scheduler_state", only_after_resume, Replay::scheduler_state},
    {"clip_partial_sums", sums_clipped, Replay::clip_partial_sums},
    {"drain_early", last_batch_lost, Replay::drain_early},
    {"adjust_scheduler", schedule_moves_within, Replay::adjust_scheduler},
    {"zero_before_backward", window_cleared, Replay::zero_before_backward},
    {"restart_count", only_after_resume, Replay::restart_count},
    {"narrow_no_sync", every_step_reduces, Replay::narrow_no_sync},
    {"FusedLAMB", gradients_overwritten, {}},
};

}  // namespace

const DefectMeaning* meaning_of(std::string_view id) {
  const auto* found = std::ranges::find(meanings, id, &DefectMeaning::id);
  return found == std::end(meanings) ? nullptr : found;
}

}  // namespace accrue
