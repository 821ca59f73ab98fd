// SPDX-License-Identifier: Apache-2.0
// The same samples every time, in order: batch b of rank r is the (b * W + r)-th micro-batch of the validation split.
#include "train/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace accrue {
namespace {

/// Switches dropout off, and back to what it was.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& module) : module_(module), before_(module.is_training()) {
    module_.eval();
  }
  ~EvaluationMode() { module_.train(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& module_;
  bool before_;
};

std::vector<std::int64_t> validation_rows(const Training& training, std::int64_t batch) {
  const std::int64_t size = training.plan().order.micro_batch;
  const std::int64_t first = (batch * training.mesh.data().size() + training.mesh.data().rank()) * size;
  const std::int64_t count = std::clamp<std::int64_t>(training.data->size(Split::validation) - first, 0, size);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

}  // namespace

bool evaluation_due(const Training& training, std::int64_t update) {
  const std::int64_t every = training.spec().evaluate.every_updates;
  return every > 0 && update % every == 0 && training.data->size(Split::validation) > 0;
}

void evaluate(Training& training) {
  training.report.phase("evaluate");
  at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(training.device));  // read once, at the end
  std::int64_t items = 0;
  std::int64_t batches = 0;
  {
    const at::NoGradGuard no_grad;
    const EvaluationMode mode(training.model.module());
    for (std::int64_t b = 0; b < training.spec().evaluate.batches; ++b) {
      const auto rows = validation_rows(training, b);
      if (rows.empty()) break;
      const LossSum loss = training.model.module().whole_loss(training.data->batch(Split::validation, rows));
      sum.add_(loss.sum);
      items += loss.count;
      ++batches;
    }
  }
  const auto [total_sum, total_items, total_batches] = sum_over_ranks(
      training.mesh.data(), {sum.item<double>(), static_cast<double>(items), static_cast<double>(batches)});
  if (total_items == 0.0) return;
  training.report.from_first(Evaluation{.update = training.cursor.update,
                                        .loss = total_sum / total_items,
                                        .batches = static_cast<std::int64_t>(total_batches),
                                        .tokens = static_cast<std::int64_t>(total_items)});
}

}  // namespace accrue
