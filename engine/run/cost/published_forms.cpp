// SPDX-License-Identifier: Apache-2.0
// Source: Korthikanti et al., arXiv:2205.05198, in its notation: a heads, b micro-batch, h width, L layers, s
// positions, t tensor ranks, V vocabulary.
#include "published_forms.h"

#include "accrue/run/cost/model_share.h"

namespace accrue {

double published_block_bytes(const ModelSpec& model, std::int64_t micro_batch, const ParallelSpec& parallel) {
  const auto a = static_cast<double>(model.heads), h = static_cast<double>(model.width);
  const auto s = static_cast<double>(model.context), t = static_cast<double>(parallel.tensor);
  const double sbh = s * static_cast<double>(micro_batch) * h;
  // Bytes of one layer (table 2): s b h (10 + 24 / t + 5 a s / (h t)), and with sequence parallelism
  // s b h / t (34 + 5 a s / h). Selective recomputation drops the scores, 5 a s / h; full keeps the input, 2 s b h.
  if (parallel.recompute == RecomputeKind::full) return 2.0 * sbh;
  const double scores = parallel.recompute == RecomputeKind::selective ? 0.0 : 5.0 * a * s / h;
  return parallel.sequence ? sbh * (34.0 + scores) / t : sbh * (10.0 + (24.0 + scores) / t);
}

double published_flops(const ModelSpec& model, const ParallelSpec& parallel) {
  const auto L = static_cast<double>(model.layers), h = static_cast<double>(model.width);
  const auto s = static_cast<double>(model.context);
  // The form with full recomputation is that of Narayanan et al., arXiv:2104.04473.
  // 72 s L h^2 (1 + s / (6 h) + V / (12 h L)) for forward and backward of one sample. Full recomputation runs forward
  // twice: 96 s L h^2 (1 + s / (6 h) + V / (16 h L)). Selective repeats the scores alone: s / (3 h).
  const bool full = parallel.recompute == RecomputeKind::full;
  const double scores = s / (h * (parallel.recompute == RecomputeKind::selective ? 3.0 : 6.0));
  const double logits = static_cast<double>(padded_vocabulary(model, parallel.tensor)) / ((full ? 16.0 : 12.0) * h * L);
  return (full ? 96.0 : 72.0) * s * L * h * h * (1.0 + scores + logits);
}

}  // namespace accrue
