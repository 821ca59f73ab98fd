// SPDX-License-Identifier: Apache-2.0
// Source: Narayanan et al., arXiv:2104.04473, with the causal half of the scores.
#include "accrue/run/cost/model_flops.h"

#include "accrue/run/cost/model_share.h"
#include "accrue/run/fields/block_form.h"

namespace accrue {

double model_flops(const ModelSpec& model, std::int64_t tensor_ranks) {
  if (!is_decoder_only(model.kind) && model.kind != ModelKind::bert) return 0.0;
  // Per sample, with L layers, h width, s positions, V rows of the table: forward takes 2 s operations (a multiply and
  // an add) per weight of a layer and 2 s h V for the logits. Q K^T and P V are 2 s^2 q operations each, with q the
  // width of all queries, of which a causal mask needs half. Backward takes twice that, so both take three times as
  // much. In GPT-2's form, with 12 h^2 weights per layer and q = h: 72 s L h^2 (1 + s / (12 h)) + 6 s h V. BERT has no
  // such mask and needs the whole scores; it is counted by the same formula.
  const BlockForm form = block_form(model);
  const auto h = static_cast<double>(model.width), s = static_cast<double>(model.context);
  const auto q = static_cast<double>(form.query_width()), inner = static_cast<double>(form.mlp_width);
  const double weights = h * (static_cast<double>(form.qkv_width()) + q + (form.gated() ? 3 : 2) * inner);
  const auto rows = static_cast<double>(padded_vocabulary(model, tensor_ranks));
  return static_cast<double>(model.layers) * (6.0 * s * weights + 6.0 * s * s * q) + 6.0 * s * h * rows;
}

}  // namespace accrue
