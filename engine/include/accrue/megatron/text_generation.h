// SPDX-License-Identifier: Apache-2.0
// Text from a GPT, token by token: sampling with temperature, top-k or top-p, or beam search. The seed determines all
// draws. Thread: the caller's. Source: Megatron-LM core 0.12.0, inference/text_generation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace accrue::megatron {

/// Shapes: tokens int64 [rows, positions] -> logits [rows, positions, vocabulary].
using LogitsFunction = std::function<at::Tensor(const at::Tensor& tokens)>;
using TokenList = std::vector<std::int64_t>;

struct GenerationOptions {
  std::int64_t tokens_to_generate = 64;  ///< minimum; see generated_length()
  double temperature = 1.0;              ///< (0, 100]
  std::int64_t top_k = 0;                ///< [0, 1000]: only the k likeliest tokens; 0 = all, 1 = always the likeliest
  double top_p = 0.0;               ///< [0, 1]: the fewest tokens with total probability p; 0 = all. Not with top_k
  double top_p_decay = 0.0;         ///< factor of top_p after each token; 0 = constant
  double top_p_bound = 0.0;         ///< lower bound of a decaying top_p; 0 = none
  bool add_bos = false;             ///< each prompt begins with `eod`
  std::optional<std::int64_t> eod;  ///< ends a row
  std::int64_t longest = 0;         ///< maximum number of positions of the model; 0 = any
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
  TokenList tokens;              ///< prompt and generated tokens, without the end of document
  std::int64_t prompt = 0;       ///< number of prompt tokens, including a leading end of document
  double log_probability = 0.0;  ///< of the generated tokens under the model; from beam_search() the score
};

/// Returns the positions of a batch: the longest prompt plus tokens_to_generate, rounded up to a multiple of 4, which
/// some kernels need, but at most `longest`.
std::int64_t generated_length(std::int64_t prompt, std::int64_t tokens_to_generate, std::int64_t longest);

/// Samples a continuation of each prompt. Errors: throws std::invalid_argument for an option out of range, for both
/// top_k and top_p, and for a prompt that is empty or leaves no room.
std::vector<GeneratedRow> generate(const LogitsFunction& logits, std::vector<TokenList> prompts,
                                   const GenerationOptions& options);
/// Returns the best continuations of one prompt, best first. Errors: as generate().
std::vector<GeneratedRow> beam_search(const LogitsFunction& logits, TokenList prompt, const BeamOptions& options);

/// Returns the distribution from which tokens are drawn. Shapes: logits [rows, vocabulary] -> [rows, vocabulary].
at::Tensor sampling_probabilities(const at::Tensor& logits, double temperature, std::int64_t top_k, double top_p);

}  // namespace accrue::megatron
