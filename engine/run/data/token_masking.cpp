// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/token_masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "numpy_sum.h"

namespace accrue {
namespace {

using Positions = std::vector<std::int64_t>;

/// The words that can be masked, each as the positions of its tokens.
std::vector<Positions> words_of(std::span<const std::int64_t> tokens, bool whole_words, const SpecialTokens& special) {
  std::vector<Positions> words;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == special.cls || tokens[i] == special.sep) continue;
    const auto position = static_cast<std::int64_t>(i);
    if (whole_words && !words.empty() && special.continues_word(tokens[i]))
      words.back().push_back(position);
    else
      words.push_back({position});
  }
  return words;
}

/// Number of words of a run, drawn from 1/n like NumPy's choice().
class RunLengths {
 public:
  explicit RunLengths(const MaskingRule& rule) : rule_(rule) {
    std::vector<double> shares;
    for (std::int64_t n = 1; n <= rule.max_words; ++n) shares.push_back(1.0 / static_cast<double>(n));
    normalize(shares);
    if (rule.longer_runs) std::reverse(shares.begin(), shares.end());
    normalize(shares);
    std::partial_sum(shares.begin(), shares.end(), std::back_inserter(up_to_));
    for (double& bound : up_to_) bound /= up_to_.back();
  }
  std::int64_t draw(RandomState& random) const {
    constexpr double stop = 0.2;
    if (rule_.geometric) return std::min(random.geometric(stop), rule_.max_words);
    return std::upper_bound(up_to_.begin(), up_to_.end(), random.random()) - up_to_.begin() + 1;
  }

 private:
  static void normalize(std::vector<double>& shares) {
    const double sum = numpy_sum(shares);
    for (double& share : shares) share /= sum;
  }
  const MaskingRule& rule_;
  std::vector<double> up_to_;
};

/// Positions of `count` words from `first` on, or fewer at the end of the text.
Positions run_of(std::span<const Positions> words, std::size_t first, std::int64_t count) {
  Positions run;
  for (const Positions& word : words.subspan(first, std::min(static_cast<std::size_t>(count), words.size() - first)))
    run.insert(run.end(), word.begin(), word.end());
  return run;
}

}  // namespace

MaskedText mask_tokens(std::span<const std::int64_t> tokens, std::int64_t target, const MaskingRule& rule,
                       const SpecialTokens& special, RandomState& random, const TokenMask& mask) {
  MaskedText text{.tokens = {tokens.begin(), tokens.end()}, .spans = {}};
  const std::vector<Positions> words = words_of(tokens, rule.whole_words, special);
  const double rounded = std::nearbyint(static_cast<double>(tokens.size()) * rule.probability);
  const double most = std::min(rule.probability * static_cast<double>(target), std::max(1.0, rounded));
  const RunLengths lengths(rule);
  std::vector<std::size_t> order(words.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(std::span(order));
  std::vector<bool> taken(tokens.size(), false);
  std::size_t count = 0;
  for (const std::size_t first : order) {
    if (static_cast<double>(count) >= most) break;
    std::int64_t length = lengths.draw(random);
    Positions run = run_of(words, first, length);
    while (static_cast<double>(count + run.size()) > most && length > 1) run = run_of(words, first, --length);
    if (static_cast<double>(count + run.size()) > most) continue;
    if (std::any_of(run.begin(), run.end(), [&](std::int64_t at) { return taken[static_cast<std::size_t>(at)]; }))
      continue;
    MaskedSpan span;
    for (const std::int64_t position : run) {
      const auto at = static_cast<std::size_t>(position);
      taken[at] = true;
      span.labels.push_back(tokens[at]);
      if (const auto replaced = mask(random)) text.tokens[at] = *replaced;
    }
    count += run.size();
    span.positions = std::move(run);
    text.spans.push_back(std::move(span));
  }
  std::sort(text.spans.begin(), text.spans.end(),
            [](const MaskedSpan& a, const MaskedSpan& b) { return a.positions.front() < b.positions.front(); });
  return text;
}

}  // namespace accrue
