// SPDX-License-Identifier: Apache-2.0
#include "grad_arena.h"

#include <ATen/ops/empty.h>

#include <utility>

namespace accrue {
namespace {

std::vector<std::int64_t> packed_strides(at::IntArrayRef sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

/// A tensor on the range's memory, with the parameter's own strides where it is dense, so that gradient and parameter
/// walk memory alike in an optimizer. It shares the storage without being a view in autograd's sense: autograd forbids
/// detach_() on views, which zero_grad(/*set_to_none=*/false) calls on every gradient.
at::Tensor place_of(const at::Tensor& flat, const FlatRange& range, const at::Tensor& parameter) {
  const bool dense = parameter.is_non_overlapping_and_dense();
  const auto strides = dense ? parameter.strides().vec() : packed_strides(parameter.sizes());
  at::Tensor place = at::empty({0}, flat.options());
  place.set_(flat.storage(), flat.storage_offset() + range.offset, parameter.sizes(), strides);
  return place;
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
    if (!compensation_.defined()) bind(i);
  }
}

at::Tensor GradArena::bucket(std::size_t index) const {
  const FlatRange& range = layout_.buckets[index];
  return flat_.narrow(0, range.offset, range.size);
}

void GradArena::bind(std::size_t i) {
  parameters_[i].mutable_grad() = views_[i];
}

void GradArena::fold(std::size_t i) {
  at::Tensor& grad = parameters_[i].mutable_grad();
  if (!grad.defined() || grad.unsafeGetTensorImpl() == views_[i].unsafeGetTensorImpl()) return;
  // Kahan, Further remarks on reducing truncation errors (1965): sum + (x - lost), and what that addition lost.
  const at::Tensor corrected = grad.detach().to_dense().to(views_[i].scalar_type()).sub(lost_[i]);
  const at::Tensor sum = views_[i].add(corrected);
  lost_[i].copy_(sum.sub(views_[i]).sub_(corrected));
  views_[i].copy_(sum);
  grad = at::Tensor();
}

void GradArena::expose() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    fold(i);
    bind(i);
  }
}

void GradArena::hide() {
  for (auto& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
}

bool GradArena::mend(std::size_t i) {
  if (compensation_.defined()) return fold(i), false;
  const at::Tensor& grad = parameters_[i].grad();
  at::Tensor& view = views_[i];
  if (grad.defined() && grad.unsafeGetTensorImpl() == view.unsafeGetTensorImpl()) return false;
  const bool aliases = grad.defined() && grad.layout() == at::kStrided &&
                       grad.const_data_ptr() == view.const_data_ptr() && grad.strides() == view.strides();
  if (!grad.defined()) {
    view.zero_();
  } else if (grad.layout() != at::kStrided) {
    view.zero_().add_(grad.detach());
  } else if (!aliases) {
    view.copy_(grad.detach());
  }
  bind(i);
  return !aliases;
}

void GradArena::zero() {
  flat_.zero_();
  if (compensation_.defined()) {
    compensation_.zero_();
    hide();
  } else {
    for (std::size_t i = 0; i < parameters_.size(); ++i) bind(i);
  }
}

}  // namespace accrue
