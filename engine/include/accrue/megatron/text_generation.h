// SPDX-License-Identifier: Apache-2.0
// Text from a GPT, token by token: sampling with temperature, top-k or top-p, or a beam. Deterministic: what is drawn
// follows from the seed. Thread: the caller's. Source: Megatron-LM core 0.12.0, inference/text_generation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace accrue::megatron {

/// tokens int64 [rows, positions] -> logits [rows, positions, vocabulary].
using LogitsFunction = std::function<at::Tensor(const at::Tensor& tokens)>;
using TokenList = std::vector<std::int64_t>;

struct GenerationOptions {
  std::int64_t tokens_to_generate = 64;  ///< at least; see generated_length()
  double temperature = 1.0;              ///< (0, 100]
  std::int64_t top_k = 0;                ///< [0, 1000]: only the k likeliest; 0 = all, 1 = the likeliest
  double top_p = 0.0;                    ///< [0, 1]: the fewest whose probabilities reach p; 0 = all. Not with top_k
  double top_p_decay = 0.0;              ///< multiplies top_p after each token; 0 = it stays
  double top_p_bound = 0.0;              ///< top_p falls no further; 0 = no bound
  bool add_bos = false;                  ///< each prompt begins with `eod`
  std::optional<std::int64_t> eod;       ///< ends a row
  std::int64_t longest = 0;              ///< positions that the model takes; 0 = any
  std::uint64_t seed = 0;
};

struct BeamOptions {
  std::int64_t tokens_to_generate = 64;
  std::int64_t beam_width = 4;
  double length_penalty = 1.0;  ///< a row's score is the sum of its log probabilities / length ^ penalty
  bool add_bos = false;
  std::optional<std::int64_t> eod;
  std::int64_t longest = 0;
};

struct GeneratedRow {
  TokenList tokens;              ///< prompt and what follows, without the end of document
  std::int64_t prompt = 0;       ///< how many of them are the prompt's, a first end of document included
  double log_probability = 0.0;  ///< of what follows, under the model; a beam's score
};

/// Positions of a batch of rows: the longest prompt and tokens_to_generate, rounded up to a multiple of 4, which some
/// kernels need; where the model takes fewer, so many.
std::int64_t generated_length(std::int64_t prompt, std::int64_t tokens_to_generate, std::int64_t longest);

/// Errors: throws std::invalid_argument for an option out of its range, both top_k and top_p, an empty prompt, and one
/// that leaves no room.
std::vector<GeneratedRow> generate(const LogitsFunction& logits, std::vector<TokenList> prompts,
                                   const GenerationOptions& options);
/// The best rows of one prompt, best first. Errors: as generate().
std::vector<GeneratedRow> beam_search(const LogitsFunction& logits, TokenList prompt, const BeamOptions& options);

/// The distribution that a token is drawn from. logits [rows, vocabulary] -> probabilities of that shape.
at::Tensor sampling_probabilities(const at::Tensor& logits, double temperature, std::int64_t top_k, double top_p);

}  // namespace accrue::megatron
