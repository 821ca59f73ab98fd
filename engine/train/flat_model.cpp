// SPDX-License-Identifier: Apache-2.0
#include "train/flat_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <stdexcept>

namespace accrue {
namespace {

/// Whether weight decay applies, as the planner's table has it; matrices decay where a parameter is not in it.
std::map<std::string, bool> decay_table(const ModelSpec& spec) {
  std::map<std::string, bool> table;
  for (const ParameterShape& parameter : parameter_shapes(spec)) table[parameter.name] = parameter.decays;
  return table;
}

}  // namespace

FlatModel::FlatModel(const ModelSpec& spec, std::uint64_t seed, at::Device device, const MakeLayout& make_layout)
    : module_(make_model(spec, seed)) {
  const auto decays = decay_table(spec);
  std::vector<std::int64_t> numels;
  for (const auto& parameter : module_->named_parameters()) {
    names_.push_back(parameter.key());
    shapes_.push_back(parameter.value().sizes().vec());
    const auto known = decays.find(parameter.key());
    decays_.push_back(known != decays.end() ? known->second : parameter.value().dim() > 1);
    numels.push_back(parameter.value().numel());
  }
  if (names_.empty()) throw std::logic_error("a model without parameters cannot be trained");
  const at::Tensor first = module_->parameters().front();
  layout_ = make_layout(first.scalar_type(), numels);
  flat_ = at::zeros({layout_.numel}, first.options().device(device).requires_grad(false));
  const at::NoGradGuard no_grad;
  std::size_t i = 0;
  for (at::Tensor& parameter : module_->parameters()) {
    at::Tensor view = slice(flat_, i++);
    view.copy_(parameter);
    parameter.set_data(view);
  }
  for (at::Tensor& buffer : module_->buffers()) buffer.set_data(buffer.to(device));
}

at::Tensor FlatModel::slice(const at::Tensor& flat, std::size_t i) const {
  return flat.narrow(0, layout_.parameters[i].offset, layout_.parameters[i].size).view(shapes_[i]);
}

NamedTensors FlatModel::parameters() const {
  NamedTensors named;
  for (std::size_t i = 0; i < names_.size(); ++i) named.emplace_back(names_[i], slice(flat_, i));
  return named;
}

std::vector<OptimizerSegment> FlatModel::segments() const {
  std::vector<OptimizerSegment> segments;
  for (std::size_t i = 0; i < names_.size(); ++i)
    segments.push_back({.name = names_[i], .range = layout_.parameters[i], .weight_decay = decays_[i] ? 1.0 : 0.0});
  return segments;
}

std::vector<double> FlatModel::weights() const {
  std::vector<double> all;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const at::Tensor values = slice(flat_, i).to(at::kDouble).cpu().contiguous();
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
