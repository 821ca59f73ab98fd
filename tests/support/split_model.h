// SPDX-License-Identifier: Apache-2.0
// A model of layers that is split over pipeline stages by hand, its batches, the work of a window over them, and what
// autograd makes of the layers in a row.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tanh.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/window_executor.h"

namespace accrue::test {

inline constexpr std::int64_t width = 3;

inline at::Tensor numbers(std::int64_t rows, std::int64_t columns, double from, double to) {
  return at::linspace(from, to, rows * columns, at::kFloat).view({rows, columns});
}

/// tanh(x weight^T); the last part's loss is a sum of squares.
struct Layer : ModelPart {
  explicit Layer(std::int64_t index)
      : weight(register_parameter("weight", numbers(width, width, -0.5 - 0.1 * static_cast<double>(index),
                                                    0.9 - 0.2 * static_cast<double>(index)))) {}
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override {
    return at::tanh(at::linear(received.defined() ? received : batch.inputs, weight));
  }
  at::Tensor empty_input(const Batch& batch) const override { return at::empty({batch.samples, width}, at::kFloat); }
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override {
    return {at::mse_loss(outputs, batch.targets, at::Reduction::Sum), batch.targets.numel()};
  }
  at::Tensor weight;
};

inline std::vector<Batch> made_batches(std::int64_t count) {
  std::vector<Batch> batches;
  for (std::int64_t m = 0; m < count; ++m) {
    const double shift = 0.1 * static_cast<double>(m);
    batches.push_back({numbers(2, width, -1.0 + shift, 1.0), numbers(2, width, 0.3, 0.7 - shift), 2, 2 * width});
  }
  return batches;
}

inline double weight_of(std::int64_t micro_step) {
  return 1.0 / static_cast<double>(micro_step + 2);
}

struct SplitWork final : WindowWork {
  explicit SplitWork(std::vector<Batch> made) : batches(std::move(made)) {}
  bool begin(std::int64_t micro_step) override {
    if (micro_step >= ends_before) return false;
    ++begun;
    return true;
  }
  const Batch& batch(std::int64_t micro_step) override { return batches[static_cast<std::size_t>(micro_step)]; }
  void starts(const PipelineOperation&) override {
    in_order = in_order && !computing;
    computing = true;
  }
  double weigh(std::int64_t micro_step, LossSum& loss) override {
    losses[micro_step] = loss.sum.item<double>();
    return weight_of(micro_step);
  }
  void computed(const PipelineOperation& operation) override {
    spans.push_back(operation);
    in_order = in_order && computing;
    computing = false;
  }
  void finished(const PipelineOperation&) override { ++done; }

  std::vector<Batch> batches;
  std::map<std::int64_t, double> losses;
  std::vector<PipelineOperation> spans;
  std::int64_t ends_before = 1 << 20;
  std::int64_t begun = 0;
  std::int64_t done = 0;
  bool computing = false;
  bool in_order = true;
};

struct Trained {
  std::vector<at::Tensor> gradients;  ///< by part
  std::map<std::int64_t, double> losses;
};

/// Trains all parts in sequence by autograd, micro-step after micro-step.
inline Trained by_autograd(std::int64_t parts, const std::vector<Batch>& batches) {
  std::vector<std::shared_ptr<Layer>> layers;
  for (std::int64_t i = 0; i < parts; ++i) layers.push_back(std::make_shared<Layer>(i));
  Trained trained;
  for (std::size_t m = 0; m < batches.size(); ++m) {
    if (batches[m].items == 0) continue;
    at::Tensor x;
    for (const auto& layer : layers) x = layer->forward(batches[m], x);
    const LossSum loss = layers.back()->loss(x, batches[m]);
    trained.losses[static_cast<std::int64_t>(m)] = loss.sum.item<double>();
    (loss.sum * weight_of(static_cast<std::int64_t>(m))).backward();
  }
  for (const auto& layer : layers) trained.gradients.push_back(layer->weight.grad());
  return trained;
}

/// The layers of one stage, by chunk.
struct StageLayers {
  StageLayers(const PipelineShape& shape, std::int64_t stage) {
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      layers.push_back(std::make_shared<Layer>(chunk * shape.stages + stage));
      parts.push_back(layers.back().get());
    }
  }
  std::vector<std::shared_ptr<Layer>> layers;
  std::vector<ModelPart*> parts;
};

}  // namespace accrue::test
