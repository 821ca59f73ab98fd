// SPDX-License-Identifier: Apache-2.0
#include "grad_arena.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace accrue {
namespace {

std::vector<std::int64_t> packed_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

/// Returns a tensor over the range's memory, with the parameter's own strides if it is dense. An optimizer then walks
/// gradient and parameter in the same order. It shares the storage without being a view for autograd: autograd forbids
/// detach_() on views, which zero_grad(/*set_to_none=*/false) calls on every gradient.
at::Tensor place_of(const at::Tensor& flat, const FlatRange& range, const at::Tensor& parameter) {
  const bool dense = parameter.is_non_overlapping_and_dense();
  const auto strides = dense ? parameter.strides().vec() : packed_strides(parameter.sizes());
  at::Tensor place = at::empty({0}, flat.options());
  place.set_(flat.storage(), flat.storage_offset() + range.offset, parameter.sizes(), strides);
  return place;
}

std::int64_t version_of(const at::Tensor& view) {
  return static_cast<std::int64_t>(view._version());
}

}  // namespace

GradArena::GradArena(std::vector<at::Tensor> parameters, FlatLayout layout, at::Tensor flat, at::Tensor compensation)
    : parameters_(std::move(parameters)),
      layout_(std::move(layout)),
      flat_(std::move(flat)),
      compensation_(std::move(compensation)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    views_.push_back(place_of(flat_, layout_.parameters[i], parameters_[i]));
    if (compensation_.defined()) lost_.push_back(place_of(compensation_, layout_.parameters[i], parameters_[i]));
    versions_.push_back(version_of(views_.back()));
    parameters_[i].mutable_grad() = at::Tensor();
  }
  in_use_.assign(parameters_.size(), 0);
}

at::Tensor GradArena::bucket(std::size_t index) const {
  const FlatRange& range = layout_.buckets[index];
  return flat_.narrow(0, range.offset, range.size);
}

void GradArena::bind(std::size_t i) {
  parameters_[i].mutable_grad() = views_[i];
  in_use_[i] = 1;
}

void GradArena::clear_dropped(std::size_t i) {
  if (has(i) || in_use_[i] == 0) return;
  const at::NoGradGuard no_grad;
  views_[i].zero_();
  if (compensation_.defined()) lost_[i].zero_();
  in_use_[i] = 0;
}

void GradArena::expect(std::size_t i) {
  if (!collect(i)) bind(i);
  if (!compensation_.defined()) return;
  if (version_of(views_[i]) != versions_[i]) lost_[i].zero_();  // written since: the term belongs to other values
  parameters_[i].mutable_grad() = at::Tensor();
}

at::Tensor GradArena::place(std::size_t i) const {
  const at::Tensor& view = views_[i];
  // On a device a wide product of narrow numbers is computed fast only in their type.
  const bool plain = view.scalar_type() == parameters_[i].scalar_type() || view.is_cpu();
  return plain && !compensation_.defined() && view.element_size() > 2 ? view : at::Tensor();
}

void GradArena::fold(std::size_t i) {
  const at::Tensor grad = parameters_[i].grad();
  bind(i);
  if (!grad.defined()) return;
  // Kahan, Further remarks on reducing truncation errors (1965): sum + (x - lost), and the rounding error of that
  // addition.
  const at::Tensor corrected = grad.detach().to_dense().to(views_[i].scalar_type()).sub(lost_[i]);
  const at::Tensor sum = views_[i].add(corrected);
  // lost = (sum - old) - corrected, which is 0 in exact arithmetic.
  lost_[i].copy_(sum.sub(views_[i]).sub_(corrected));
  views_[i].copy_(sum);
  versions_[i] = version_of(views_[i]);
}

bool GradArena::collect(std::size_t i) {
  clear_dropped(i);
  if (!has(i)) return false;
  const at::Tensor grad = parameters_[i].grad();
  at::Tensor& view = views_[i];
  if (grad.unsafeGetTensorImpl() == view.unsafeGetTensorImpl()) return true;
  const at::NoGradGuard no_grad;
  const bool aliases = grad.layout() == at::kStrided && grad.const_data_ptr() == view.const_data_ptr() &&
                       grad.strides() == view.strides();
  if (grad.layout() != at::kStrided)
    view.zero_().add_(grad.detach());
  else if (!aliases)
    view.copy_(grad.detach());
  bind(i);
  return true;
}

void GradArena::set(std::size_t i, bool has) {
  if (has) return bind(i);
  parameters_[i].mutable_grad() = at::Tensor();
  clear_dropped(i);
}

void GradArena::zero() {
  const at::NoGradGuard no_grad;
  flat_.zero_();
  if (compensation_.defined()) compensation_.zero_();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].mutable_grad() = at::Tensor();
    in_use_[i] = 0;
  }
}

}  // namespace accrue
