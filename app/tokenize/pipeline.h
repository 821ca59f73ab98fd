// SPDX-License-Identifier: Apache-2.0
// A tokenizer of steps: added tokens are found, the text between them is normalised and cut into words, and a model
// gives the tokens of each word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "added_tokens.h"
#include "normalizer.h"
#include "splitter.h"
#include "tokenizer.h"

namespace accrue::tokenize {

/// How the texts of tokens become one text.
struct Joining {
  bool letters = false;    ///< tokens name bytes by letters
  std::string apart = {};  ///< a token without this at its front begins a word; empty: tokens have their own spaces
  std::string space = {};  ///< stands for a space
  bool begins_with_space = false;  ///< a text is given one that it did not have
};

struct PipelineParts {
  Normalizer normalizer = {};
  Splitter splitter = {};
  std::unique_ptr<WordModel> model;
  std::vector<AddedToken> added = {};
  Joining joining = {};
  std::string kind = {};  ///< as the sidecar of a dataset names it
  bool keep_case = false;
};

/// Errors: those of the normalizer, for an added token.
Result<std::unique_ptr<Tokenizer>> make_pipeline(PipelineParts parts);

/// Fills in the special tokens of a BERT and a T5 by their usual names. find: the number of a token, or -1.
void take_special_tokens(DatasetSidecar& facts, const std::function<std::int64_t(const std::string&)>& find);

}  // namespace accrue::tokenize
