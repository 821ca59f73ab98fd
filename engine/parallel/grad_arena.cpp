// SPDX-License-Identifier: Apache-2.0
#include "grad_arena.h"

#include <utility>

namespace accrue {
namespace {

/// The parameter's own strides where it is dense, so that gradient and parameter walk memory alike in an optimizer.
at::Tensor view_like(const at::Tensor& flat, const FlatRange& range, const at::Tensor& parameter) {
  const at::Tensor place = flat.narrow(0, range.offset, range.size);
  if (parameter.is_non_overlapping_and_dense()) return place.as_strided(parameter.sizes(), parameter.strides());
  return place.view(parameter.sizes());
}

}  // namespace

GradArena::GradArena(std::vector<at::Tensor> parameters, FlatLayout layout, at::Tensor flat)
    : parameters_(std::move(parameters)), layout_(std::move(layout)), flat_(std::move(flat)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    views_.push_back(view_like(flat_, layout_.parameters[i], parameters_[i]));
    bind(i);
  }
}

at::Tensor GradArena::bucket(std::size_t index) const {
  const FlatRange& range = layout_.buckets[index];
  return flat_.narrow(0, range.offset, range.size);
}

void GradArena::bind(std::size_t i) {
  parameters_[i].mutable_grad() = views_[i];
}

bool GradArena::mend(std::size_t i) {
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
  for (std::size_t i = 0; i < parameters_.size(); ++i) bind(i);
}

}  // namespace accrue
