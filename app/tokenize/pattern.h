// SPDX-License-Identifier: Apache-2.0
// What a tokenizer.json searches for in a text: a regular expression, by ICU, or a text.
#pragma once

#include <unicode/uregex.h>

#include <functional>
#include <memory>
#include <vector>

#include "json_parts.h"
#include "unicode.h"

namespace accrue::tokenize {

/// A part of a text.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool matches = false;
};

class Pattern {
 public:
  /// part: {"Regex": "..."} or {"String": "..."}. Errors: data for a regular expression that ICU does not read.
  static Result<Pattern> of(const json& part);
  static Result<Pattern> of_regex(const std::string& regex);

  /// Divides a text into matches, which may be empty, and what is between them. Errors: data for a text on which a
  /// match takes too long.
  Result<std::vector<Stretch>> divide(const Text& text) const;

 private:
  std::shared_ptr<URegularExpression> regex_;
  std::string source_;
};

}  // namespace accrue::tokenize
