// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/text_generation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>

namespace accrue::megatron {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

void demand(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument("generate: " + message);
}

void check_prompt(const TokenList& prompt, std::int64_t tokens_to_generate, std::int64_t longest) {
  demand(!prompt.empty(), "the prompt is empty; give at least one token, or add_bos");
  demand(tokens_to_generate >= 1, "tokens_to_generate is below 1");
  demand(longest == 0 || std::ssize(prompt) < longest, "the prompt has " + std::to_string(prompt.size()) +
                                                           " tokens; the model takes " + std::to_string(longest) +
                                                           ", and one more must fit");
}

void begin(TokenList& prompt, bool add_bos, std::optional<std::int64_t> eod) {
  if (!add_bos) return;
  demand(eod.has_value(), "add_bos needs an end-of-document token to begin with");
  prompt.insert(prompt.begin(), *eod);
}

/// Logits that follow the first `positions` tokens, in float64. There is no cache of keys and values: every token costs
/// a forward of all tokens before it. Shapes: tokens [B, T] -> [B, V].
at::Tensor last_logits(const LogitsFunction& logits, const at::Tensor& tokens, std::int64_t positions) {
  return logits(tokens.narrow(1, 0, positions)).select(1, positions - 1).to(at::kDouble);
}

TokenList list_of(const at::Tensor& row, std::int64_t length) {
  const at::Tensor own = row.narrow(0, 0, length).contiguous();
  return {own.const_data_ptr<std::int64_t>(), own.const_data_ptr<std::int64_t>() + length};
}

/// A finished row of a beam. score = sum of log probabilities / length^length_penalty.
struct Hypothesis {
  double score;
  TokenList tokens;
};

}  // namespace

std::int64_t generated_length(std::int64_t prompt, std::int64_t tokens_to_generate, std::int64_t longest) {
  // Rounded up to a multiple of 4.
  const std::int64_t length = (prompt + tokens_to_generate + 3) / 4 * 4;
  return longest > 0 ? std::min(length, longest) : length;
}

at::Tensor sampling_probabilities(const at::Tensor& logits, double temperature, std::int64_t top_k, double top_p) {
  // p = softmax(logits / temperature), of which only the k largest, or the fewest that reach p, keep a chance. Source
  // of top-p: Holtzman et al., The Curious Case of Neural Text Degeneration. The last softmax makes the remaining
  // probabilities sum to 1.
  at::Tensor scaled = logits.to(at::kDouble) / temperature;
  if (top_k > 0 && top_k < scaled.size(-1)) {
    const at::Tensor kept = std::get<0>(at::topk(scaled, top_k, -1));
    scaled = scaled.masked_fill(scaled < kept.narrow(-1, top_k - 1, 1), never);
  } else if (top_p > 0.0) {
    const auto [sorted, order] = at::sort(scaled, /*dim=*/-1, /*descending=*/true);
    const at::Tensor probabilities = at::softmax(sorted, -1);
    // The tokens before this one already reach p.
    const at::Tensor out = at::cumsum(probabilities, -1) - probabilities > top_p;
    scaled = scaled.masked_fill(out.scatter(-1, order, out), never);
  }
  return at::softmax(scaled, -1);
}

std::vector<GeneratedRow> generate(const LogitsFunction& logits, std::vector<TokenList> prompts,
                                   const GenerationOptions& options) {
  demand(options.temperature > 0.0 && options.temperature <= 100.0, "temperature lies above 0 and up to 100");
  demand(options.top_k >= 0 && options.top_k <= 1000, "top_k lies between 0 and 1000");
  demand(options.top_p >= 0.0 && options.top_p <= 1.0, "top_p lies between 0 and 1");
  demand(options.top_k == 0 || options.top_p == 0.0, "top_k and top_p exclude each other");
  demand(options.top_p_decay >= 0.0 && options.top_p_decay <= 1.0, "top_p_decay lies between 0 and 1");
  demand(options.top_p_bound >= 0.0 && options.top_p_bound <= 1.0, "top_p_bound lies between 0 and 1");
  demand(options.top_p > 0.0 || (options.top_p_decay == 0.0 && options.top_p_bound == 0.0),
         "top_p_decay and top_p_bound need top_p");
  demand(!prompts.empty(), "there is no prompt");
  const at::NoGradGuard no_grad;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max(), longest = 0;
  for (TokenList& prompt : prompts) {
    begin(prompt, options.add_bos, options.eod);
    check_prompt(prompt, options.tokens_to_generate, options.longest);
    shortest = std::min(shortest, std::ssize(prompt));
    longest = std::max(longest, std::ssize(prompt));
  }
  const std::int64_t length = generated_length(longest, options.tokens_to_generate, options.longest);
  at::Tensor tokens = at::full({std::ssize(prompts), length}, options.eod.value_or(0), at::kLong);
  std::vector<GeneratedRow> rows;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    tokens[static_cast<std::int64_t>(i)].narrow(0, 0, std::ssize(prompts[i])).copy_(at::tensor(prompts[i], at::kLong));
    rows.push_back({.tokens = {}, .prompt = std::ssize(prompts[i])});
  }
  std::vector<std::int64_t> ends(prompts.size(), 0);  // 0: the row continues
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(options.seed);
  double top_p = options.top_p;
  std::int64_t reached = shortest;
  for (; reached < length && std::ranges::count(ends, 0) > 0; ++reached) {
    // [rows, vocabulary], for the token at `reached`.
    const at::Tensor scores = last_logits(logits, tokens, reached);
    const at::Tensor log_probabilities = at::log_softmax(scores, -1);
    const at::Tensor drawn =
        options.top_k == 1 ? scores.argmax(-1)
                           : at::multinomial(sampling_probabilities(scores, options.temperature, options.top_k, top_p),
                                             1, false, generator)
                                 .squeeze(-1);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      // Shorter prompts start to continue earlier; a finished row keeps its tokens.
      if (reached < rows[i].prompt || ends[i] > 0) continue;
      const auto row = static_cast<std::int64_t>(i);
      const auto token = drawn[row].item<std::int64_t>();
      // Under the model itself: neither temperature nor top_k and top_p change the score.
      rows[i].log_probability += log_probabilities[row][token].item<double>();
      if (options.eod && token == *options.eod)
        ends[i] = reached;
      else
        tokens[row][reached] = token;
    }
    // After i steps max(top_p decay^i, bound).
    if (options.top_p_decay > 0.0) top_p = std::max(top_p * options.top_p_decay, options.top_p_bound);
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].tokens = list_of(tokens[static_cast<std::int64_t>(i)], ends[i] > 0 ? ends[i] : reached);
  return rows;
}

// Each step adds log p(token | row) to the rows' sums, [beams, V], and takes the 2 * beams best: every beam has one end
// of document, so at least `beams` of them continue. A beam may continue several times, or not at all. An end of
// document finishes its row only if that candidate is among the best `beams`; a worse one would not have been kept
// anyway. The search ends by Megatron-LM's rule (BeamHypotheses.is_done), although a length penalty could still lift a
// longer row over the worst finished one. With fewer candidates than beams, which a tiny vocabulary causes, -infinity
// keeps the spare rows out.
std::vector<GeneratedRow> beam_search(const LogitsFunction& logits, TokenList prompt, const BeamOptions& options) {
  demand(options.beam_width >= 1, "beam_width is below 1");
  const at::NoGradGuard no_grad;
  begin(prompt, options.add_bos, options.eod);
  check_prompt(prompt, options.tokens_to_generate, options.longest);
  const std::int64_t beams = options.beam_width, prompt_length = std::ssize(prompt);
  const std::int64_t length = generated_length(prompt_length, options.tokens_to_generate, options.longest);
  at::Tensor tokens = at::full({beams, length}, options.eod.value_or(0), at::kLong);
  tokens.narrow(1, 0, prompt_length).copy_(at::tensor(prompt, at::kLong));
  std::vector<double> scores(static_cast<std::size_t>(beams), 0.0);
  std::vector<Hypothesis> finished;  // best first, as many as there are beams
  const auto score_of = [&](double sum, std::int64_t made) {
    return sum / std::pow(static_cast<double>(made), options.length_penalty);
  };
  const auto finish = [&](TokenList row, double score) {
    const auto place = std::ranges::upper_bound(finished, score, std::greater<>(), &Hypothesis::score);
    finished.insert(place, {score, std::move(row)});
    if (std::ssize(finished) > beams) finished.pop_back();
  };
  std::int64_t reached = prompt_length;
  bool done = false;
  for (; reached < length && !done; ++reached) {
    const bool first = reached == prompt_length;
    at::Tensor sums = at::log_softmax(last_logits(logits, tokens, reached), -1);
    sums = sums + at::tensor(scores, at::kDouble).unsqueeze(1);
    if (first) sums = sums.narrow(0, 0, 1);  // all rows are the same still
    const std::int64_t vocabulary = sums.size(1);
    const auto [best, places] = at::topk(sums.reshape({-1}), std::min(2 * beams, sums.numel()));
    struct Next {
      double score;
      std::int64_t token, beam;
    };
    std::vector<Next> next;
    for (std::int64_t rank = 0; rank < best.numel() && std::ssize(next) < beams; ++rank) {
      const auto place = places[rank].item<std::int64_t>();
      const Next candidate{best[rank].item<double>(), place % vocabulary, place / vocabulary};
      if (options.eod && candidate.token == *options.eod) {
        if (rank < beams)
          finish(list_of(tokens[candidate.beam], reached), score_of(candidate.score, reached + 1 - prompt_length));
      } else {
        next.push_back(candidate);
      }
    }
    demand(!next.empty(), "the vocabulary has no token but the end of document");
    // The best open row, scored at its present length, is not above the worst finished one.
    done = std::ssize(finished) == beams &&
           finished.back().score >= score_of(best[0].item<double>(), reached + 1 - prompt_length);
    while (std::ssize(next) < beams) next.push_back({never, next.front().token, next.front().beam});
    at::Tensor moved = tokens.clone();
    for (std::int64_t i = 0; i < beams; ++i) {
      const Next& each = next[static_cast<std::size_t>(i)];
      moved[i].copy_(tokens[each.beam]);
      moved[i][reached] = each.token;
      scores[static_cast<std::size_t>(i)] = each.score;
    }
    tokens = moved;
  }
  for (std::int64_t i = 0; i < beams && !done; ++i)
    if (scores[static_cast<std::size_t>(i)] > never)
      finish(list_of(tokens[i], reached), score_of(scores[static_cast<std::size_t>(i)], reached - prompt_length));
  std::vector<GeneratedRow> rows;
  for (Hypothesis& each : finished)
    rows.push_back({.tokens = std::move(each.tokens), .prompt = prompt_length, .log_probability = each.score});
  return rows;
}

}  // namespace accrue::megatron
