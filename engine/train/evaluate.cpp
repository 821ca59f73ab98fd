// SPDX-License-Identifier: Apache-2.0
// Every evaluation uses the same samples in order: batch b of rank r is micro-batch b W + r of the validation split.
#include "train/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

#include "models/evaluation_mode.h"
#include "pipeline/forward_pass.h"

namespace accrue {
namespace {

std::vector<std::int64_t> validation_rows(const Training& training, std::int64_t batch) {
  // Micro-batch b W + r, of rank r of W replicas.
  const SampleOrder in_order{.samples = training.data->size(Split::validation),
                             .micro_batch = training.plan().order.micro_batch,
                             .world = training.mesh.data().size(),
                             .shuffle = false};
  return in_order.batch(0, batch, training.mesh.data().rank());
}

/// Returns the loss of a batch on the last stage, undefined on the others. Collective: the pipeline axis.
LossSum loss_through_stages(Training& training, const Batch& batch) {
  const auto& parts = training.model.parts();
  const at::Tensor output = forward_pass(
      training.link, training.mesh.pipeline(), parts.size(),
      [&](std::size_t chunk) { return parts[chunk]->empty_input(batch); },
      [&](std::size_t chunk, const at::Tensor& received) { return parts[chunk]->forward(batch, received); });
  return output.defined() ? parts.back()->loss(output, batch) : LossSum();
}

}  // namespace

bool evaluation_due(const Training& training, std::int64_t update) {
  const std::int64_t every = training.spec().evaluate.every_updates;
  return every > 0 && update % every == 0 && training.data->size(Split::validation) > 0;
}

std::optional<double> evaluate(Training& training) {
  training.report.phase("evaluate");
  training.await_parameters();
  // Shapes: []. The loss sums of batches, float32 or float64, add up in float64.
  at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(training.device));  // read once, at the end
  at::Tensor second = at::zeros_like(sum);
  std::int64_t items = 0, samples = 0;
  std::int64_t batches = 0;
  {
    const at::NoGradGuard no_grad;
    const EvaluationMode mode(training.model.module());
    for (std::int64_t b = 0; b < training.spec().evaluate.batches; ++b) {
      const auto rows = validation_rows(training, b);
      // All ranks of a replica have the same rows, so no stage waits for another's batch.
      if (rows.empty()) break;
      const LossSum loss = loss_through_stages(training, training.data->batch(Split::validation, rows));
      // Only the last stage has losses; the others add 0 to the sums over the world.
      if (!loss.sum.defined()) continue;
      sum.add_(loss.sum);
      items += loss.count;
      if (loss.second.defined()) second.add_(loss.second);
      samples += loss.second_count;
      ++batches;
    }
  }
  training.link.finish();
  if (training.tensor.rank() > 0) {  // the first rank of the tensor axis reports for all
    sum.zero_();
    second.zero_();
    items = samples = batches = 0;
  }
  const auto [total_sum, total_items, total_batches] = sum_over_ranks(
      training.mesh.world(), {sum.item<double>(), static_cast<double>(items), static_cast<double>(batches)});
  double mean_of_second = 0.0, total_samples = 0.0;
  if (has_second_loss(training.spec().model)) {
    const auto [total, count, none] =
        sum_over_ranks(training.mesh.world(), {second.item<double>(), static_cast<double>(samples), 0.0});
    mean_of_second = count == 0.0 ? 0.0 : total / count;
    total_samples = count;
  }
  NamedNumbers scalars = training.hooks.take_reports(Split::validation);
  if (total_items == 0.0 && total_samples == 0.0) return std::nullopt;
  // The sum of the losses over the sum of their items: exact for batches of any length, unlike a mean of means.
  const double mean = total_items == 0.0 ? 0.0 : total_sum / total_items;
  // Two losses add up as in training: each is a mean over its own count.
  Evaluation evaluation{.update = training.cursor.update(),
                        .loss = mean + mean_of_second,
                        .batches = static_cast<std::int64_t>(total_batches),
                        .tokens = static_cast<std::int64_t>(total_items),
                        .scalars = std::move(scalars)};
  if (training.splits_loss()) evaluation.losses = {{token_loss_name, mean}, {order_loss_name, mean_of_second}};
  training.scalars.add(evaluation, training.cursor.samples);
  training.report.from_first(evaluation);
  return evaluation.loss;
}

}  // namespace accrue
