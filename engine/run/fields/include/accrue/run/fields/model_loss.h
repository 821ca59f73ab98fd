// SPDX-License-Identifier: Apache-2.0
// loss_of(): the loss function of a model.
#pragma once

#include "accrue/run/fields/spec.h"

namespace accrue {

inline LossKind loss_of(const ModelSpec& model) {
  return model.loss.value_or(is_transformer(model.kind) ? LossKind::cross_entropy : LossKind::mse);
}

}  // namespace accrue
