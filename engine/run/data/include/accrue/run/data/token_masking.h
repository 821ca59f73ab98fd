// SPDX-License-Identifier: Apache-2.0
// Selection of the tokens that a model must predict: runs of whole words, drawn in the order of Megatron-LM's
// MaskedWordPieceDataset (megatron-core 0.12.0), so that a seed gives the same masks. Its permutation of unmasked words
// is omitted, because it draws from a generator that no seed of the dataset sets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "accrue/run/data/numpy_random.h"
#include "accrue/run/data/special_tokens.h"

namespace accrue {

struct MaskingRule {
  double probability = 0.15;   ///< share of the tokens
  std::int64_t max_words = 3;  ///< of one run
  bool whole_words = true;     ///< false: each token is a word
  bool longer_runs = false;    ///< false: a run of n words has 1/n of the probability of one word; true: the reverse
  bool geometric = false;      ///< lengths by a geometric distribution with parameter 0.2, as in SpanBERT
  bool operator==(const MaskingRule&) const = default;
};

/// Rules of Megatron-LM's pretraining programs.
inline constexpr MaskingRule bert_masking{};
inline constexpr MaskingRule t5_masking{.max_words = 10, .geometric = true};

/// A masked run.
struct MaskedSpan {
  std::vector<std::int64_t> positions;  ///< ascending
  std::vector<std::int64_t> labels;     ///< original tokens
  bool operator==(const MaskedSpan&) const = default;
};

struct MaskedText {
  std::vector<std::int64_t> tokens;
  std::vector<MaskedSpan> spans;  ///< by position
};

/// Returns the replacement of one masked token; none: the token stays and is still predicted.
using TokenMask = std::function<std::optional<std::int64_t>(RandomState&)>;

/// Masks at most probability * target tokens, with `target` the length to which the sample was cut. Never masks cls and
/// sep.
MaskedText mask_tokens(std::span<const std::int64_t> tokens, std::int64_t target, const MaskingRule& rule,
                       const SpecialTokens& special, RandomState& random, const TokenMask& mask);

}  // namespace accrue
