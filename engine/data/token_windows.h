// SPDX-License-Identifier: Apache-2.0
// Language-model samples: windows of `context` tokens, with the same windows shifted by one token as targets. There are
// three kinds of token store: the bytes of a text, a flat file of uint16 or uint32, and a seeded generator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "accrue/data/data_source.h"

namespace accrue {

/// Tokens by sample. Fills context + 1 tokens: the inputs and, shifted by one, the targets.
class TokenStore {
 public:
  virtual ~TokenStore() = default;
  virtual void read(std::int64_t sample, std::int64_t* tokens, std::int64_t count) const = 0;
};

/// Sample i starts at token i * context of a file of `token_bytes`-wide little-endian tokens.
/// Errors (data): those of MappedFile, too short for the samples, a token outside the vocabulary (with its place).
Result<std::unique_ptr<TokenStore>> open_token_file(const std::filesystem::path& path, std::int64_t token_bytes,
                                                    std::int64_t samples, const ModelSpec& model);

/// Joins the samples of two stores: `samples` of the first, then those of the second.
std::unique_ptr<TokenStore> joined_tokens(std::unique_ptr<TokenStore> first, std::int64_t samples,
                                          std::unique_ptr<TokenStore> second);

/// Makes a source over a store whose samples SamplePlaces divides.
std::unique_ptr<DataSource> make_token_windows(std::unique_ptr<TokenStore> store, std::int64_t context,
                                               const DataFacts& facts);

}  // namespace accrue
