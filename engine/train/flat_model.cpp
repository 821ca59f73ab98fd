// SPDX-License-Identifier: Apache-2.0
#include "train/flat_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <map>
#include <stdexcept>

#include "accrue/run/cost/parameter_groups.h"

namespace accrue {
namespace {

/// Share of each parameter of a part. One that is missing from the planner's table, or has another shape there, is
/// whole, and decays if it is a matrix.
std::vector<ParameterShare> shares_of(const ModelPart& part, const ModelSpec& spec, const ModelShare& share) {
  std::map<std::string, ParameterShare> planned;
  for (ParameterShare& each : parameter_shares(spec, share)) planned[each.name] = std::move(each);
  std::vector<ParameterShare> shares;
  for (const auto& [name, parameter] : trained_parameters(part)) {
    const auto known = planned.find(name);
    const std::vector<std::int64_t> shape = parameter.sizes().vec();
    const bool same = known != planned.end() && known->second.shape == shape;
    shares.push_back(same ? known->second
                          : ParameterShare{.name = name,
                                           .whole = shape,
                                           .offset = std::vector<std::int64_t>(shape.size(), 0),
                                           .extent = shape,
                                           .shape = shape,
                                           .whole_shape = shape,
                                           .decays = shape.size() > 1});
  }
  return shares;
}

/// Returns the part itself, or a module with all parts as children.
std::shared_ptr<torch::nn::Module> module_of(const std::vector<std::shared_ptr<ModelPart>>& parts) {
  if (parts.size() == 1) return parts.front();
  auto all = std::make_shared<torch::nn::Module>();
  for (std::size_t chunk = 0; chunk < parts.size(); ++chunk) all->register_module(std::to_string(chunk), parts[chunk]);
  return all;
}

void add_once(NamedTensors& all, const std::string& name, const at::Tensor& tensor) {
  const auto is_it = [&](const auto& known) { return known.second.is_same(tensor); };
  if (tensor.defined() && std::ranges::none_of(all, is_it)) all.emplace_back(name, tensor);
}

/// Only a user's model can violate this.
void demand_trainable(const NamedTensors& parameters) {
  const auto refuse = [](const std::string& message, const char* hint) {
    throw ResultError({ErrorCode::config, message, "custom_model_provider_function", hint});
  };
  if (parameters.empty())
    refuse("the model has no parameter that requires a gradient, so nothing can be trained", "Unfreeze one.");
  const auto& [first_name, first] = parameters.front();
  for (const auto& [name, tensor] : parameters)
    if (tensor.scalar_type() != first.scalar_type())
      refuse("parameter " + first_name + " is of type " + c10::toString(first.scalar_type()) + " and " + name + " of " +
                 c10::toString(tensor.scalar_type()) + "; those that train must be of one type",
             "Convert the model in the provider function, or freeze one of the two.");
}

}  // namespace

NamedTensors trained_parameters(const torch::nn::Module& module) {
  NamedTensors all;
  for (const auto& entry : module.named_parameters())
    if (entry.value().requires_grad()) add_once(all, entry.key(), entry.value());
  return all;
}

NamedTensors untrained_tensors(const torch::nn::Module& module) {
  NamedTensors all;
  for (const auto& entry : module.named_parameters())
    if (!entry.value().requires_grad()) add_once(all, entry.key(), entry.value());
  for (const auto& entry : module.named_buffers()) add_once(all, entry.key(), entry.value());
  return all;
}

FlatModel::FlatModel(const ModelSpec& spec, const std::vector<ModelShare>& shares, const MakePart& make_part,
                     at::Device device, const MakeLayout& make_layout) {
  std::vector<std::shared_ptr<ModelPart>> parts;
  std::vector<std::size_t> ends;  ///< by chunk: index after its last parameter
  for (const ModelShare& share : shares) {
    parts.push_back(make_part(share));
    parts_.push_back(parts.back().get());
    for (ParameterShare& each : shares_of(*parts.back(), spec, share)) shares_.push_back(std::move(each));
    ends.push_back(shares_.size());
  }
  module_ = module_of(parts);
  undivided_ = shares == std::vector<ModelShare>{ModelShare{}};
  for (const ParameterShare& each : shares_) names_.push_back(each.name);
  const NamedTensors trained = trained_parameters(*module_);
  demand_trainable(trained);
  const at::Tensor first = trained.front().second;
  layout_ = make_layout(first.scalar_type(), shares_);
  for (std::size_t begin = 0; const std::size_t end : ends) {
    // The layout runs backwards: a chunk's last parameter has its lowest offset.
    const FlatRange first_one = layout_.parameters[begin], last_one = layout_.parameters[end - 1];
    ranges_.push_back({last_one.offset, first_one.offset + first_one.size - last_one.offset});
    begin = end;
  }
  flat_ = at::zeros({layout_.numel}, first.options().device(device).requires_grad(false));
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const at::Tensor view = slice(flat_, i);
    view.copy_(trained[i].second);
    // Parameters become views of flat_ [numel], so an update of the flat tensor is one of the model.
    trained[i].second.set_data(view);
    trained_.push_back(trained[i].second);
  }
  for (const ModelPart* part : parts_)
    for (const auto& entry : part->named_parameters())
      if (!entry.value().requires_grad()) add_once(frozen_, entry.key(), entry.value());
  for (auto& [name, buffer] : buffers()) buffer.set_data(buffer.to(device));
#ifdef __GLIBC__
  ::malloc_trim(0);  // drawing the weights has freed memory of their size, which the process would keep
#endif
}

FlatRange FlatModel::range_between(const at::Tensor& one, const at::Tensor& other) {
  const std::int64_t begin = std::min(one.storage_offset(), other.storage_offset());
  return {begin, std::max(one.storage_offset() + one.numel(), other.storage_offset() + other.numel()) - begin};
}

ModelPart& FlatModel::undivided() const {
  if (undivided_) return *parts_.front();
  throw std::logic_error("this rank holds parts of a model");
}

at::Tensor FlatModel::slice(const at::Tensor& flat, std::size_t i) const {
  // [numel] -> the share's shape. The layout's alignment leaves gaps between parameters, which stay 0.
  return flat.narrow(0, layout_.parameters[i].offset, layout_.parameters[i].size).view(shares_[i].shape);
}

at::Tensor FlatModel::unpadded(const at::Tensor& flat, std::size_t i) const {
  const at::Tensor own = slice(flat, i);
  return shares_[i].padded ? own.narrow(0, 0, shares_[i].extent.front()) : own;
}

NamedTensors FlatModel::buffers() const {
  NamedTensors all = frozen_;
  for (const ModelPart* part : parts_)
    for (const auto& entry : part->named_buffers()) add_once(all, entry.key(), entry.value());
  return all;
}

void FlatModel::demand_still_frozen() const {
  for (const auto& [name, tensor] : frozen_)
    if (tensor.requires_grad())
      throw ResultError({ErrorCode::config,
                         "parameter " + name + " was unfrozen while the run trains, and no optimizer holds it",
                         "custom_model_provider_function",
                         "Unfreeze it in the provider function, before the run begins, or leave it frozen."});
}

std::vector<OptimizerSegment> FlatModel::segments(const OptimizerSpec& optimizer) const {
  std::vector<OptimizerSegment> segments;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const ParameterGroup group = parameter_group(names_[i], shares_[i].decays, optimizer);
    segments.push_back({.name = names_[i],
                        .range = layout_.parameters[i],
                        .weight_decay = group.weight_decay,
                        .lr = group.lr,
                        .decoupled = group.decoupled,
                        .tensor_split = shares_[i].divided,
                        .shared = shares_[i].shared});
  }
  return segments;
}

std::vector<double> FlatModel::weights() const {
  std::vector<double> all;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const at::Tensor values = unpadded(flat_, i).to(at::kDouble).cpu().contiguous();
    all.insert(all.end(), values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel());
  }
  return all;
}

std::string FlatModel::first_non_finite(const at::Tensor& flat) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!at::isfinite(slice(flat, i)).all().item<bool>()) return names_[i];
  return {};
}

}  // namespace accrue
