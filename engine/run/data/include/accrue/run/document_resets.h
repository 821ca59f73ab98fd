// SPDX-License-Identifier: Apache-2.0
// What the end of a document means to the rest of a GPT's sample, as Megatron-LM has it: the token that ends a document
// still belongs to it; positions and attention may begin again after it, and as an input it may be left out of the
// loss. Source: get_ltor_masks_and_position_ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace accrue {

/// For each token the index of the first token of its document within the sample. Its position is its index less that,
/// where positions are reset; where attention is, it sees no token before it.
inline std::vector<std::int64_t> document_starts(std::span<const std::int64_t> tokens, std::int64_t end_of_document) {
  std::vector<std::int64_t> starts(tokens.size(), 0);
  for (std::size_t i = 1; i < tokens.size(); ++i)
    starts[i] = tokens[i - 1] == end_of_document ? static_cast<std::int64_t>(i) : starts[i - 1];
  return starts;
}

}  // namespace accrue
