// SPDX-License-Identifier: Apache-2.0
#include "train/float64_copy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/dropout.h>

#include <algorithm>
#include <stdexcept>

#include "accrue/run/base/counted.h"
#include "train/faults.h"
#include "train/train_window.h"

namespace accrue {
namespace {

/// Masks and counts, which have other types, stay the same.
at::Tensor widened(const at::Tensor& tensor) {
  return tensor.defined() && at::isFloatingType(tensor.scalar_type()) ? tensor.to(at::kDouble) : tensor;
}

Batch widened(Batch batch) {
  batch.inputs = widened(batch.inputs);
  batch.targets = widened(batch.targets);
  return batch;
}

bool is_dropout(const torch::nn::Module& module) {
  return module.as<torch::nn::Dropout>() || module.as<torch::nn::Dropout2d>() || module.as<torch::nn::Dropout3d>() ||
         module.as<torch::nn::AlphaDropout>() || module.as<torch::nn::FeatureAlphaDropout>();
}

/// A library may return the same model, or table, again: converting it would convert the trained one.
void demand_own_tensors(const std::vector<at::Tensor>& copies, const std::vector<at::Tensor>& trained) {
  for (const at::Tensor& copy : copies)
    for (const at::Tensor& each : trained)
      if (copy.defined() && each.defined() && (copy.is_same(each) || copy.is_alias_of(each)))
        throw std::invalid_argument("the library gives the same tensors in a second model");
}

}  // namespace

Float64Copy::Float64Copy(Training& training) : training_(training) {
  ModelSpec model = Faults::model(training.spec());
  model.dtype = Dtype::float64;
  if (model.init == WeightInit::checkpoint) model.init = WeightInit::zeros;  // the trained values replace them
  const RunSpec& spec = training.spec();
  part_ = training.hooks.part(model, static_cast<std::uint64_t>(spec.run.seed), {}, training.tensor, spec.parallel);
  demand_own_tensors(part_->parameters(), training.model.module().parameters());
  demand_own_tensors(part_->buffers(), training.model.module().buffers());
  // Parameters become float64 before they take the trained values, which are exact in it.
  for (at::Tensor& tensor : part_->parameters()) tensor.set_data(widened(tensor.data()).to(training.device));
  for (at::Tensor& tensor : part_->buffers()) tensor.set_data(widened(tensor).to(training.device));
  const at::NoGradGuard no_grad;
  parameters_ = trained_parameters(*part_);
  const std::vector<std::string>& names = training.model.names();
  const auto name_of = [](const auto& each) { return each.first; };
  if (!std::ranges::equal(parameters_, names, {}, name_of))
    throw std::invalid_argument("the library gives a model that trains " +
                                counted(std::ssize(parameters_), "parameter") + " where it gave one that trains " +
                                std::to_string(names.size()) + ", or of other names");
  for (std::size_t i = 0; i < names.size(); ++i)
    parameters_[i].second.data().copy_(training.model.slice(training.model.flat(), i));
  own_buffers_ = untrained_tensors(*part_);
  for (const auto& [name, buffer] : training.model.buffers()) buffers_.emplace_back(name, buffer.clone());
  if (!std::ranges::equal(own_buffers_, buffers_, {}, name_of, name_of))
    throw std::invalid_argument("the library gives a model of other buffers, or with other frozen parameters");
}

void Float64Copy::set_mode(Mode mode) {
  part_->train(mode != Mode::evaluation);
  if (mode != Mode::without_dropout) return;
  for (const auto& module : part_->modules())
    if (is_dropout(*module)) module->eval();
}

SampleGradient Float64Copy::gradient(const std::vector<std::int64_t>& samples, std::int64_t key, Mode mode,
                                     bool carry) {
  set_mode(mode);
  // Each gradient starts from the same buffers, unless the last forward's are to carry over.
  if (!carry) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < buffers_.size(); ++i) own_buffers_[i].second.copy_(buffers_[i].second);
  }
  part_->zero_grad();
  SampleGradient gradient;
  if (!samples.empty()) {
    key_dropout(training_, key, 0);
    const LossSum loss = part_->whole_loss(widened(training_.data->batch(Split::train, samples)));
    loss.sum.backward();
    gradient.items = static_cast<double>(loss.count);
  }
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : parameters_) {
    const at::Tensor& grad = parameter.grad();
    all.push_back(grad.defined() ? grad.detach().reshape({-1}).clone()
                                 : at::zeros({parameter.numel()}, parameter.options().requires_grad(false)));
  }
  // [parameters' elements], in parameter order.
  gradient.sum = at::cat(all);
  return gradient;
}

}  // namespace accrue
