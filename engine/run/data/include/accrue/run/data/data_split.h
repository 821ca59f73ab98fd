// SPDX-License-Identifier: Apache-2.0
// Division of a token stream into samples, the samples kept for evaluation, and the label that losses ignore. The
// planner counts samples with it, and the ranks' loaders read them by it. Inline, so that both sides can use it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace accrue {

/// The label that losses ignore, in every kind of data.
inline constexpr std::int64_t ignored_label = -100;

/// Samples in a stream of `tokens` tokens (bytes of a text). Sample i holds the context + 1 tokens [i * context, i *
/// context + context]: inputs are the first `context`, targets the last `context`. So neighbours share one token, and
/// every token but the first is a target once. The rest at the end is unused.
inline std::int64_t stream_samples(std::int64_t tokens, std::int64_t context) {
  return tokens <= context || context < 1 ? 0 : (tokens - 1) / context;
}

/// Index of a stream sample's first token.
inline std::int64_t stream_sample_begin(std::int64_t sample, std::int64_t context) {
  return sample * context;
}

/// Samples [0, training) are for training, [training, training + validation) for evaluation.
struct DataSplit {
  std::int64_t training = 0;
  std::int64_t validation = 0;
  bool operator==(const DataSplit&) const = default;
};

/// Keeps the last ceil(fraction * samples) samples for evaluation; 0 keeps none. The small subtrahend prevents a
/// product such as 0.07 * 100 = 7.000000000000001 from rounding up.
inline DataSplit split_samples(std::int64_t samples, double validation_fraction) {
  const auto wanted = static_cast<std::int64_t>(std::ceil(validation_fraction * static_cast<double>(samples) - 1e-9));
  const std::int64_t validation = std::clamp<std::int64_t>(wanted, 0, samples);
  return {samples - validation, validation};
}

/// Fraction with which split_samples() keeps `validation` of `samples`, which is at least one.
inline double fraction_keeping(std::int64_t validation, std::int64_t samples) {
  const double fraction = static_cast<double>(validation) / static_cast<double>(samples);
  if (split_samples(samples, fraction).validation == validation) return fraction;
  return (static_cast<double>(validation) - 0.5) / static_cast<double>(samples);  // for very many samples
}

}  // namespace accrue
