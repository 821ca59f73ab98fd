// SPDX-License-Identifier: Apache-2.0
// Effect of the end of a document inside a GPT sample, as in Megatron-LM. The token that ends a document still belongs
// to it. Positions and attention may restart after it, and as an input it may be excluded from the loss. Source:
// get_ltor_masks_and_position_ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace accrue {

/// Returns for each token the index of the first token of its document within the sample. If positions are reset, a
/// token's position is its index minus that. If attention is reset, it sees no earlier token.
inline std::vector<std::int64_t> document_starts(std::span<const std::int64_t> tokens, std::int64_t end_of_document) {
  std::vector<std::int64_t> starts(tokens.size(), 0);
  for (std::size_t i = 1; i < tokens.size(); ++i)
    starts[i] = tokens[i - 1] == end_of_document ? static_cast<std::int64_t>(i) : starts[i - 1];
  return starts;
}

}  // namespace accrue
