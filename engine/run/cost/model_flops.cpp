// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/cost/model_flops.h"

#include "accrue/run/cost/model_share.h"

namespace accrue {

double model_flops(const ModelSpec& model, std::int64_t tensor_ranks) {
  if (model.kind != ModelKind::gpt && model.kind != ModelKind::bert) return 0.0;
  const auto h = static_cast<double>(model.width), s = static_cast<double>(model.context);
  const auto rows = static_cast<double>(padded_vocabulary(model, tensor_ranks));
  return 72.0 * s * static_cast<double>(model.layers) * h * h * (1.0 + s / (12.0 * h)) + 6.0 * s * h * rows;
}

}  // namespace accrue
