// SPDX-License-Identifier: Apache-2.0
// Facts about a tokenizer that the samplers of BERT and T5 need: tokens with a special meaning, and tokens that
// continue a word.
#pragma once

#include <cstdint>
#include <vector>

namespace accrue {

struct SpecialTokens {
  /// Tokens are 0, ..., vocabulary - 1; a BERT draws its random tokens from them.
  std::int64_t vocabulary = 0;
  std::int64_t cls = -1;                ///< before the first segment; -1, here and below: none
  std::int64_t sep = -1;                ///< after each segment
  std::int64_t mask = -1;               ///< replaces a token that is to be predicted
  std::int64_t pad = 0;                 ///< after the end of a sample
  std::int64_t bos = -1;                ///< t5: first token of the decoder
  std::int64_t eos = -1;                ///< t5: last token of the decoder's labels
  std::vector<std::int64_t> sentinels;  ///< t5: one replaces each masked span
  /// For each token, whether it continues the word of the token before it, like "##ing" in a WordPiece vocabulary.
  /// Empty: every token is a word.
  std::vector<bool> continues;

  bool continues_word(std::int64_t token) const {
    return token >= 0 && token < static_cast<std::int64_t>(continues.size()) &&
           continues[static_cast<std::size_t>(token)];
  }
  bool operator==(const SpecialTokens&) const = default;
};

}  // namespace accrue
