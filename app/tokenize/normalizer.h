// SPDX-License-Identifier: Apache-2.0
// What a tokenizer changes in a text before it looks for words: forms of Unicode, case, accents, replacements.
// Source: huggingface/tokenizers, normalizers.
#pragma once

#include <functional>

#include "json_parts.h"
#include "unicode.h"

namespace accrue::tokenize {

/// Where a part of a text stands. A long text comes in several parts.
struct Place {
  bool goes_on = false;  ///< the part continues the last one, with no added token between them
  bool first = true;     ///< nothing of the text precedes it
};

/// Changes a part of a text, and its place if its front is removed.
using Normalizer = std::function<Result<void>(Text&, Place&)>;

/// Makes the normalizer of a tokenizer.json; an empty function for none. Errors: data, for what is not supported.
Result<Normalizer> normalizer_of(const json& part);

}  // namespace accrue::tokenize
