// SPDX-License-Identifier: Apache-2.0
// Tokens that a text contains literally, such as <|endoftext|>.
#pragma once

#include <bitset>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "accrue/run/base/result.h"
#include "unicode.h"

namespace accrue::tokenize {

struct AddedToken {
  std::string content;
  std::int32_t token = 0;
  bool takes_space_before = false;  ///< includes the preceding white space
  bool takes_space_after = false;   ///< and the following
  bool alone = false;               ///< occurs only where no letter or digit is beside it
  bool early = false;               ///< is searched before the text is normalised
};

/// Finds added tokens in a text. Of two that begin at one place the longer is used.
class AddedTokenSearch {
 public:
  /// Adds a token as it stands in the texts that are searched.
  void add(Text content, const AddedToken& token);

  /// Calls between(begin, end) for what is between two tokens, and found(token) for each of them, in the order of the
  /// text. Errors: those of `between`.
  Result<void> walk(const Text& text, const std::function<Result<void>(std::size_t, std::size_t)>& between,
                    const std::function<void(std::int32_t)>& found) const;

 private:
  const AddedToken* token_at(const Text& text, std::size_t at, std::size_t& end) const;

  std::unordered_map<Text, AddedToken> tokens_;
  std::unordered_map<char16_t, std::vector<std::size_t>> lengths_;  ///< of those with this first unit, longest first
  std::bitset<0x10000> begins_;
};

}  // namespace accrue::tokenize
