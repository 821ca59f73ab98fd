// SPDX-License-Identifier: Apache-2.0
// How a tokenizer cuts a text into words, before its model cuts the words into tokens.
// Source: huggingface/tokenizers, pre_tokenizers.
#pragma once

#include <functional>
#include <vector>

#include "json_parts.h"
#include "normalizer.h"

namespace accrue::tokenize {

/// Cuts each word of a list. The place is that of the first word, before and after. Errors: data for a text on which a
/// pattern takes too long.
using Splitter = std::function<Result<void>(std::vector<Text>&, Place&)>;

/// Makes the pre_tokenizer of a tokenizer.json; an empty function for none. Errors: data, for what is not supported.
Result<Splitter> splitter_of(const json& part);

/// Whether the words are then read as bytes.
bool splits_into_bytes(const json& part);

}  // namespace accrue::tokenize
