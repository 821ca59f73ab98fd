// SPDX-License-Identifier: Apache-2.0
// How a stream of tokens falls into samples, which samples are kept for evaluation, and the label that no loss counts.
// The planner counts samples by it, and the ranks' loaders read them where it says. Inline, for both sides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace accrue {

/// The label that a loss leaves out, in every kind of data.
inline constexpr std::int64_t ignored_label = -100;

/// Samples in a stream of `tokens` tokens (bytes of a text). Sample i holds tokens [i * context, i * context +
/// context], context + 1 of them: inputs are the first `context`, targets the last `context`, so neighbours share one
/// token and every token but the first is a target once. What is left at the end is not used.
inline std::int64_t stream_samples(std::int64_t tokens, std::int64_t context) {
  return tokens <= context || context < 1 ? 0 : (tokens - 1) / context;
}

/// Index of a stream sample's first token.
inline std::int64_t stream_sample_begin(std::int64_t sample, std::int64_t context) {
  return sample * context;
}

/// Samples [0, training) are trained on, [training, training + validation) are kept for evaluation.
struct DataSplit {
  std::int64_t training = 0;
  std::int64_t validation = 0;
  bool operator==(const DataSplit&) const = default;
};

/// The last ceil(fraction * samples) samples are kept for evaluation; a fraction of 0 keeps none. The small subtrahend
/// keeps a product such as 0.07 * 100 = 7.000000000000001 from rounding up.
inline DataSplit split_samples(std::int64_t samples, double validation_fraction) {
  const auto wanted = static_cast<std::int64_t>(std::ceil(validation_fraction * static_cast<double>(samples) - 1e-9));
  const std::int64_t validation = std::clamp<std::int64_t>(wanted, 0, samples);
  return {samples - validation, validation};
}

/// The fraction of which split_samples() keeps so many of `samples`, which are at least one.
inline double fraction_keeping(std::int64_t validation, std::int64_t samples) {
  const double fraction = static_cast<double>(validation) / static_cast<double>(samples);
  if (split_samples(samples, fraction).validation == validation) return fraction;
  return (static_cast<double>(validation) - 0.5) / static_cast<double>(samples);  // of very many samples
}

}  // namespace accrue
