// SPDX-License-Identifier: Apache-2.0
// Rows of tokens in which documents end with 0, and what the original makes of them when all of reset_position_ids,
// reset_attention_mask and eod_mask_loss are on: megatron-core 0.16.1 and 0.12.0 over torch 2.11.0,
// _get_ltor_masks_and_position_ids of its GPT dataset. Under all eight combinations of the three each of its outputs
// depended on its own switch alone, and a token saw all tokens from the first one that it sees up to itself.
#pragma once

#include <cstdint>
#include <vector>

namespace accrue::test {

struct ResetDocuments {
  const char* name;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> first_seen;  ///< by each token
  std::vector<std::int64_t> loss_mask;
};

inline const ResetDocuments reset_documents[] = {
    {"three documents", {3, 0, 5, 6, 0, 7}, {0, 1, 0, 1, 2, 0}, {0, 0, 2, 2, 2, 5}, {1, 0, 1, 1, 0, 1}},
    {"one document, which does not end", {1, 2, 3, 4}, {0, 1, 2, 3}, {0, 0, 0, 0}, {1, 1, 1, 1}},
    {"an end at the start", {0, 1, 2, 3}, {0, 0, 1, 2}, {0, 1, 1, 1}, {0, 1, 1, 1}},
    {"an end after an end", {1, 0, 0, 2, 0, 4}, {0, 1, 0, 0, 1, 0}, {0, 0, 2, 3, 3, 5}, {1, 0, 0, 1, 0, 1}},
    {"an end at the end", {1, 2, 3, 0}, {0, 1, 2, 3}, {0, 0, 0, 0}, {1, 1, 1, 0}},
    {"ends alone", {0, 0, 0}, {0, 0, 0}, {0, 1, 2}, {0, 0, 0}},
    {"sixteen tokens",
     {5, 6, 7, 0, 2, 0, 9, 9, 9, 9, 0, 0, 4, 8, 0, 1},
     {0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 4, 0, 0, 1, 2, 0},
     {0, 0, 0, 0, 4, 4, 6, 6, 6, 6, 6, 11, 12, 12, 12, 15},
     {1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1}},
};

}  // namespace accrue::test
