// SPDX-License-Identifier: Apache-2.0
// Source: Narayanan et al., arXiv:2104.04473, with the causal half of the scores.
#include "accrue/run/cost/model_flops.h"

#include "accrue/run/cost/model_share.h"

namespace accrue {

double model_flops(const ModelSpec& model, std::int64_t tensor_ranks) {
  if (model.kind != ModelKind::gpt && model.kind != ModelKind::bert) return 0.0;
  // Per sample, with L layers, h width, s positions, V rows of the table: forward takes 24 s h^2 (1 + s / (12 h)) per
  // layer and 2 s h V for the logits, two operations per multiply-add; backward takes twice that, so both take three
  // times as much: 72 and 6. In the bracket, 1 is the four products of a layer (12 h^2 weights) and s / (12 h) half of
  // a score matrix: Q K^T and P V are 2 s^2 h operations each, of which a causal mask needs half, so 2 s^2 h in all.
  // BERT has no such mask and needs twice that; it is counted by the same formula.
  const auto h = static_cast<double>(model.width), s = static_cast<double>(model.context);
  const auto rows = static_cast<double>(padded_vocabulary(model, tensor_ranks));
  return 72.0 * s * static_cast<double>(model.layers) * h * h * (1.0 + s / (12.0 * h)) + 6.0 * s * h * rows;
}

}  // namespace accrue
