// SPDX-License-Identifier: Apache-2.0
// A TensorAxis inside an autograd context, which can store only tensors and IValues.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

struct KeptAxis : torch::CustomClassHolder {
  explicit KeptAxis(const TensorAxis& kept) : axis(kept) {}
  TensorAxis axis;
};

inline void keep_axis(torch::autograd::AutogradContext* ctx, const TensorAxis& axis) {
  ctx->saved_data["axis"] = c10::IValue::make_capsule(c10::make_intrusive<KeptAxis>(axis));
}

inline TensorAxis kept_axis(torch::autograd::AutogradContext* ctx) {
  return c10::static_intrusive_pointer_cast<KeptAxis>(ctx->saved_data["axis"].toCapsule())->axis;
}

}  // namespace accrue
