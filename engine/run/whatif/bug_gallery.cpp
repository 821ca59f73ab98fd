// SPDX-License-Identifier: Apache-2.0
// The runs of the gallery are as small as a bug allows. Most train on sequences of unequal length: 21 of them, two at a
// time on two ranks, so an epoch ends with a short window whose last batch is short too; or 16 of these, which fill
// their windows. The others train on a table.
#include "accrue/run/whatif/bug_gallery.h"

#include <iterator>

namespace accrue {

namespace {

constexpr GalleryBug gallery[] = {
    {Bug::mean_of_means, "Mean of means",
     "Loss and gradient drift with N as soon as samples differ in length. The loss may end lower than without the bug, "
     "and is not the right one.",
     "The lamp is red: every micro-step counts equally, although they hold different numbers of items.",
     "Sum the losses of the window, count its items over all ranks, and divide once, at the boundary."},
    {Bug::no_division, "No division",
     "Loss and gradient norm are about N times too large in a full window and less in a short one, so both jump at the "
     "end of every epoch.",
     "The lamp is red: the gradient points the right way and is about N times too long, so it differs from that of one "
     "batch by about N - 1 times its length.",
     "Divide each loss by the window's micro-steps, or the sum by what it holds."},
    {Bug::tail_by_steps, "Short window divided by N", "The last update of every epoch is too weak.",
     "The lamp is red at the last update of each epoch and green before it.",
     "Divide by the micro-steps that the window really holds."},
    {Bug::no_sync_off_by_one, "Reduced one micro-step too early",
     "The ranks drift apart, and a checkpoint of one is not that of another.",
     "The lamp is red: the ranks hold different gradients when they step.",
     "Reduce in the last micro-step of the window, not in the first."},
    {Bug::no_sync_backward_only, "no_sync around the backward alone",
     "Accumulation saves no traffic: each step is as slow as without it.",
     "The lamp is amber: more reductions than the window needs. Zoomed to a window (W), the strip shows one in every "
     "micro-step.",
     "Put the forward into no_sync as well, because it decides whether the backward reduces."},
    {Bug::no_no_sync, "No no_sync at all", "Each update sends N times the bytes, for the same weights.",
     "The lamp is amber: more reductions than the window needs. Zoomed to a window (W), the strip shows one in every "
     "micro-step.",
     "Cover all micro-steps of a window but the last with no_sync."},
    {Bug::clip_every_micro_step, "Clipped in every micro-step",
     "Updates point elsewhere: the last micro-steps of a window count most. The curves part slowly.",
     "The lamp is red: sums that were not finished were clipped.",
     "Clip once a window, after the reduction and before the optimizer."},
    {Bug::schedule_per_micro_step, "Schedule counts micro-steps",
     "The learning rate decays N times too fast, and training stalls.",
     "The lamp is amber, and the rate reaches its end when a quarter of the updates is done.",
     "Advance the schedule once an update, after the optimizer."},
    {Bug::batch_norm, "Batch norm in each micro-batch", "No N gives the curve of the large batch.",
     "The lamp is amber: statistics of a micro-batch are not those of the window. The sum itself is right.",
     "Leave batch norm out, or use a norm that looks at one sample at a time, such as layer norm."},
    {Bug::skipped_micro_step, "Micro-step left out, divisor unchanged",
     "A step with bad values is skipped without a word, and its update is too small.",
     "The lamp is red: a micro-step is missing from the sum, and the divisor counts it.",
     "Leave out the whole window, or divide by what is left."},
    {Bug::unused_parameters, "Parameters left out of the reduction", "Some weights differ between the ranks.",
     "The lamp is red: the ranks hold different gradients for some of the parameters.",
     "Reduce every parameter in every window, with zeros where a micro-step did not use it."},
    {Bug::pipeline_sync, "One stage is never reduced", "One part of the model learns from its own rank's data alone.",
     "The lamp is red: the ranks hold different gradients for some of the parameters.",
     "Let each stage reduce after its own last backward of the window."},
    {Bug::divide_by_own_size, "Scaled by the micro-batch's own size",
     "The gradient changes when the same samples are split into other micro-batches.",
     "The lamp is red: the loss is scaled by the micro-batch's own size.",
     "Divide the sum by the items of the whole window."},
    {Bug::repeated_samples, "Last batch filled up with repeats", "Curves part at the end of every epoch.",
     "The lamp is red at the last update of each epoch: samples were repeated and count twice.",
     "Leave the last batch short, and weight it by its items."},
    {Bug::zero_grad_inside, "Gradients cleared inside the window",
     "N changes nothing but the time that an update takes.",
     "The lamp is red: only the last micro-step of the window counts.",
     "Clear the gradients once a window, after the optimizer."},
};
static_assert(std::size(gallery) == static_cast<std::size_t>(Bug::zero_grad_inside), "one row a bug");

/// Task: classify numbers as above or below zero, in sequences of one to seven.
RunSpec ragged_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.inputs = 1;
  spec.model.outputs = 2;
  spec.model.loss = LossKind::cross_entropy;
  spec.model.dtype = Dtype::float64;
  spec.data.kind = DataKind::inline_;
  for (int sample = 0; sample < 21; ++sample) {
    std::vector<double> sequence;
    std::vector<std::int64_t> labels;
    for (int at = 0; at < sample * 5 % 7 + 1; ++at) {
      sequence.push_back((sample * 7 + at * 3) % 9 - 4 + 0.5);
      labels.push_back(sequence.back() > 0.0 ? 1 : 0);
    }
    spec.data.sequences.push_back(std::move(sequence));
    spec.data.labels.push_back(std::move(labels));
  }
  spec.optimizer.lr = 0.05;
  return spec;
}

/// Task: a generated table for a small network.
RunSpec table_spec() {
  RunSpec spec;
  spec.model.kind = ModelKind::mlp;
  spec.model.inputs = 3;
  spec.model.outputs = 2;
  spec.model.hidden = {8};
  spec.model.dtype = Dtype::float64;
  spec.data.kind = DataKind::synthetic;
  spec.data.samples = 44;
  spec.optimizer.lr = 0.2;
  return spec;
}

/// Bugs whose numbers are N times as large in a full window: their runs have only full windows.
bool needs_full_windows(Bug bug) {
  return bug == Bug::no_sync_backward_only || bug == Bug::no_no_sync || bug == Bug::schedule_per_micro_step;
}

bool needs_table(Bug bug) {
  return bug == Bug::tail_by_steps || bug == Bug::batch_norm || bug == Bug::pipeline_sync ||
         bug == Bug::clip_every_micro_step;
}

}  // namespace

std::span<const GalleryBug> bug_gallery() {
  return gallery;
}

const GalleryBug* find_gallery_bug(Bug bug) {
  return bug == Bug::none ? nullptr : &gallery[static_cast<std::size_t>(bug) - 1];
}

RunSpec gallery_spec(Bug bug) {
  RunSpec spec = needs_table(bug) ? table_spec() : ragged_spec();
  spec.optimizer.kind = OptimizerKind::sgd;
  spec.accumulation.steps = 4;
  spec.accumulation.micro_batch = 2;
  spec.parallel.data = 2;
  spec.run.epochs = 20;
  spec.evaluate.exactness_every = 1;
  spec.teaching.bug = bug;
  if (needs_full_windows(bug)) {
    spec.data.sequences.resize(16);
    spec.data.labels.resize(16);
    spec.run.epochs = 40;
  }
  if (bug == Bug::clip_every_micro_step) {
    // The norm is far below those of the first updates, so every update is clipped. The larger rate keeps steps long.
    spec.optimizer.clip_norm = 0.03;
    spec.optimizer.lr = 2.0;
  }
  if (bug == Bug::schedule_per_micro_step) spec.schedule.kind = ScheduleKind::cosine;
  if (const GalleryBug* entry = find_gallery_bug(bug)) spec.run.name = std::string(entry->title);
  return spec;
}

std::string_view explain_idle_window(Bug bug) {
  switch (bug) {
    case Bug::mean_of_means:
      return "The bug has nothing to act on here: all slots are equal.";
    case Bug::tail_by_steps:
      return "The bug has nothing to act on here: the window is full.";
    case Bug::repeated_samples:
      return "The bug has nothing to act on here: no sample is repeated in this window.";
    case Bug::clip_every_micro_step:
      return "The bug has nothing to act on here: no sum of this window is long enough to be clipped.";
    default:
      return "The bug has nothing to act on in this window.";
  }
}

}  // namespace accrue
