// SPDX-License-Identifier: Apache-2.0
// Data without a file, a pure function of (seed, sample): a seeded Markov chain for language models, a noisy linear
// teacher for everything else.
#pragma once

#include <cstdint>
#include <memory>

#include "accrue/run/fields/spec.h"
#include "data/table_source.h"
#include "data/token_windows.h"

namespace accrue {

/// A language over at most 64 symbols in which each symbol has four successors (probabilities 0.55, 0.25, 0.15, 0.05).
/// The best possible loss is about 1.1 nats per token, the initial loss log(vocabulary). A small GPT learns it in a few
/// hundred updates.
std::unique_ptr<TokenStore> make_markov_language(std::uint64_t seed, std::int64_t vocabulary);

/// x ~ N(0, 1), y = W x + 0.1 noise with a seeded W; for cross-entropy the label is the largest output.
Table make_linear_teacher(std::uint64_t seed, std::int64_t samples, const ModelSpec& model);

}  // namespace accrue
