// SPDX-License-Identifier: Apache-2.0
// The licence text as an indexed dataset of sentences: a byte is a token, a line a sentence, and a blank line ends a
// document.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "accrue/run/data/dataset_sidecar.h"
#include "accrue/run/data/indexed_dataset_builder.h"

namespace accrue::test {

/// 256 bytes, six tokens with a meaning of their own, 24 sentinels, and two that never occur.
inline constexpr std::int64_t licence_vocabulary = 288;

/// Documents of fewer than four lines go together with the next one.
inline void write_licence_corpus(const std::filesystem::path& licence, const std::filesystem::path& prefix) {
  auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
  std::ifstream file(licence);
  std::int64_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty() && lines >= 4) {
      builder.end_document().value();
      lines = 0;
    }
    if (line.empty()) continue;
    std::vector<std::int64_t> tokens;
    for (const char letter : line) tokens.push_back(static_cast<unsigned char>(letter));
    builder.add_item(tokens).value();
    ++lines;
  }
  if (lines > 0) builder.end_document().value();
  builder.finalize().value();
  DatasetSidecar sidecar{.tokenizer = "bytes", .sentences = true};
  sidecar.special = {
      .vocabulary = licence_vocabulary, .cls = 256, .sep = 257, .mask = 258, .pad = 259, .bos = 260, .eos = 261};
  for (std::int64_t sentinel = 262; sentinel < 286; ++sentinel) sidecar.special.sentinels.push_back(sentinel);
  sidecar.largest_token = 255;
  write_sidecar(prefix, sidecar).value();
}

}  // namespace accrue::test
