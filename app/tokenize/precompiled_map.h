// SPDX-License-Identifier: Apache-2.0
// The rules of a SentencePiece model for normalising texts, as a tokenizer.json holds them: a double-array trie of byte
// sequences, and the texts that replace them.
// Source: google/sentencepiece, normalizer.cc; s-yata/darts-clone, darts.h.
#pragma once

#include "normalizer.h"

namespace accrue::tokenize {

/// base64: the rules. Errors: data for damaged ones.
Result<Normalizer> precompiled_map(const std::string& base64);

}  // namespace accrue::tokenize
