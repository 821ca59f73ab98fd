// SPDX-License-Identifier: Apache-2.0
// MMEngine's `clip_grad` dictionary, implemented by the clipping that all systems share.
#include "accrue/accumulation/mmengine/clip_grad.h"

#include <stdexcept>
#include <string>

#include "accrue/accumulation/clip_grad_norm.h"

namespace accrue::mmengine {

void check(const ClipGrad& clip) {
  const bool by_norm = clip.type == ClipGrad::Type::norm;
  if ((by_norm ? clip.max_norm : clip.clip_value) > 0.0) return;
  throw std::invalid_argument(std::string("clip_grad: ") + (by_norm ? "max_norm" : "clip_value") +
                              " is not above 0, which would zero every gradient; leave clip_grad out to not clip");
}

std::optional<double> clip_gradients(const ClipGrad& clip, const std::vector<at::Tensor>& parameters) {
  if (clip.type == ClipGrad::Type::value) {
    clip_grad_value(parameters, clip.clip_value);
    return std::nullopt;
  }
  if (gradients_of(parameters).empty()) return std::nullopt;
  return clip_grad_norm(parameters, clip.max_norm,
                        {.norm_type = clip.norm_type, .error_if_nonfinite = clip.error_if_nonfinite});
}

}  // namespace accrue::mmengine
