// SPDX-License-Identifier: Apache-2.0
// A plug-in library of models and losses as people write them: [B, 3] to [B, 2], each with one property that decides
// whether micro-batches can have the gradient of one batch.
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <memory>

#include "accrue/comm/rendezvous.h"
#include "accrue/megatron/plugin_library.h"

using namespace accrue::megatron;

namespace {

/// In float32, whatever the spec says.
struct Layers : ModelChunk {
  Layers() {
    in = register_module("in", torch::nn::Linear(3, 8));
    out = register_module("out", torch::nn::Linear(8, 2));
  }
  Tensors forward(const Batch& batch) override { return {out(middle(at::relu(in(batch.at("inputs")))))}; }
  virtual at::Tensor middle(const at::Tensor& x) { return x; }
  torch::nn::Linear in{nullptr}, out{nullptr};
};

struct Normed final : Layers {
  Normed() { norm = register_module("norm", torch::nn::BatchNorm1d(8)); }
  at::Tensor middle(const at::Tensor& x) override { return norm(x); }
  torch::nn::BatchNorm1d norm{nullptr};
};

struct NormedAndDropped final : Layers {
  NormedAndDropped() {
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    drop = register_module("drop", torch::nn::Dropout(0.3));
  }
  at::Tensor middle(const at::Tensor& x) override { return drop(norm(x)); }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
};

struct Dropped final : Layers {
  at::Tensor middle(const at::Tensor& x) override { return at::dropout(x, 0.3, is_training()); }
};

/// Drops in evaluation, too.
struct Restless final : Layers {
  at::Tensor middle(const at::Tensor& x) override { return at::dropout(x, 0.3, true); }
};

/// Subtracts a running mean, which every forward in training moves; beside it a mask and a count of other types.
struct Centred final : Layers {
  Centred() {
    centre = register_buffer("centre", at::zeros({8}));
    seen = register_buffer("seen", at::zeros({}, at::kLong));
    mask = register_buffer("mask", at::zeros({8}, at::kBool));
  }
  at::Tensor middle(const at::Tensor& x) override {
    const at::Tensor y = at::relu(x - centre.clone());
    if (is_training()) {
      centre.mul_(0.5).add_(x.detach().mean(0), 0.5);
      seen.add_(1);
    }
    return y;
  }
  at::Tensor centre, seen, mask;
};

/// Multiplies by 3, which is no weight that trains: a frozen parameter, or a buffer.
struct Scaled : Layers {
  at::Tensor middle(const at::Tensor& x) override { return x * scale; }
  at::Tensor scale = at::full({8}, 3.0);
};
struct Frozen final : Scaled {
  Frozen() { register_parameter("scale", scale, /*requires_grad=*/false); }
};
struct Held final : Scaled {
  Held() { register_buffer("scale", scale); }
};
/// Unfreezes its parameter in the third micro-step.
struct Thawing final : Scaled {
  Thawing() { register_parameter("scale", scale, /*requires_grad=*/false); }
  at::Tensor middle(const at::Tensor& x) override {
    if (is_training() && ++steps == 3) scale.requires_grad_(true);
    return Scaled::middle(x);
  }
  int steps = 0;
};

struct AllFrozen final : Scaled {
  AllFrozen() {
    for (at::Tensor& each : parameters()) each.requires_grad_(false);
  }
};

/// One matrix in two places, under one name or two.
struct Twice : Layers {
  Twice() { first = register_parameter("first", at::full({8, 8}, 0.1)); }
  at::Tensor middle(const at::Tensor& x) override { return x.matmul(first).matmul(first); }
  at::Tensor first;
};
struct Tied final : Twice {
  Tied() { register_parameter("second", first); }
};

/// A parameter that no forward uses.
struct Spare final : Layers {
  Spare() { register_parameter("spare", at::full({2, 4}, 1.0)); }
};

struct Mixed final : Layers {
  Mixed() { register_parameter("wide", at::zeros({8}, at::kDouble)); }
};

/// Every output against every target of the micro-batch.
LossOut contrastive(const Batch& batch, const Tensors& outputs) {
  const at::Tensor& y = outputs.at(0);
  const at::Tensor alike = y.matmul(batch.at("targets").view_as(y).to(y.scalar_type()).t());
  return {at::cross_entropy_loss(alike, at::arange(y.size(0), at::kLong)), std::nullopt, {}};
}

at::Tensor hardness(const Batch& batch, const Tensors& outputs) {
  const at::Tensor& y = outputs.at(0);
  const at::Tensor error = (y - batch.at("targets").view_as(y).to(y.scalar_type())).square().mean(1);
  return (1.0 - at::exp(-error)).square() * error;
}

/// A mean of samples: hard ones weigh more, each by itself.
LossOut focal(const Batch& batch, const Tensors& outputs) {
  return {hardness(batch, outputs).mean(), std::nullopt, {}};
}

/// The same sum divided by how hard the micro-batch is as a whole.
LossOut focal_of_batch(const Batch& batch, const Tensors& outputs) {
  const at::Tensor each = hardness(batch, outputs);
  return {each.sum() / (each.detach().sum() + 1.0), std::nullopt, {}};
}

/// The mean square, with how often the larger output is the larger target, as a numerator and a denominator, and the
/// number of the rank's rows.
LossOut with_accuracy(const Batch& batch, const Tensors& outputs) {
  const at::Tensor& y = outputs.at(0);
  const at::Tensor t = batch.at("targets").view_as(y).to(y.scalar_type());
  const at::Tensor hits = (y.argmax(1) == t.argmax(1)).sum().to(at::kDouble);
  const at::Tensor rows = at::full({}, static_cast<double>(y.size(0)), at::kDouble);
  const at::Tensor loss = at::mse_loss(y, t);
  return {loss, std::nullopt, {{"loss", loss.detach()}, {"accuracy", at::stack({hits, rows})}, {"rows", rows}}};
}

/// Accrue's own GPT, given by a library.
std::shared_ptr<ModelChunk> own_gpt(const ChunkPlace& place) {
  static const auto alone = accrue::single_communicator();
  return gpt_chunk(*place.model, 7, {}, accrue::TensorAxis(*alone));
}

template <typename Model>
void add_model(Registry& registry, const char* name) {
  registry.custom_model_provider_function.add(name, [](const ChunkPlace&) { return std::make_shared<Model>(); });
}

}  // namespace

ACCRUE_PLUGIN("Own models", registry) {
  add_model<Layers>(registry, "layers");
  add_model<Normed>(registry, "normed");
  add_model<NormedAndDropped>(registry, "normed_and_dropped");
  add_model<Dropped>(registry, "dropped");
  add_model<Restless>(registry, "restless");
  add_model<Centred>(registry, "centred");
  add_model<Frozen>(registry, "frozen");
  add_model<Held>(registry, "held");
  add_model<Thawing>(registry, "thawing");
  add_model<AllFrozen>(registry, "all_frozen");
  add_model<Twice>(registry, "twice");
  add_model<Tied>(registry, "tied");
  add_model<Mixed>(registry, "mixed");
  add_model<Spare>(registry, "spare");
  registry.custom_model_provider_function.add("own_gpt", own_gpt);
  registry.custom_loss_function.add("contrastive", contrastive);
  registry.custom_loss_function.add("with_accuracy", with_accuracy);
  registry.custom_loss_function.add("focal", focal);
  registry.custom_loss_function.add("focal_of_batch", focal_of_batch);
}
