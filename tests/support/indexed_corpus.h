// SPDX-License-Identifier: Apache-2.0
// Small indexed datasets whose tokens count on from a first one, and sums of what is cut from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "accrue/run/base/sha256.h"
#include "accrue/run/data/index_array.h"
#include "accrue/run/data/indexed_dataset_builder.h"

namespace accrue::test {

/// 50 sequences, 907 tokens.
inline const std::vector<int> corpus_lengths = {36, 15, 39, 17, 10, 9,  37, 28, 31, 17, 8, 13, 16, 17, 28, 14, 12,
                                                2,  31, 21, 23, 19, 10, 2,  19, 17, 15, 6, 1,  17, 5,  37, 28, 32,
                                                3,  5,  39, 20, 20, 19, 8,  37, 31, 12, 4, 2,  4,  28, 15, 28};

/// One document a sequence. What a build step answers is looked at by finalize() and by the reader.
inline void write_corpus(const std::filesystem::path& prefix, const std::vector<int>& lengths, bool count_on = true,
                         std::int64_t first = 0) {
  auto builder = IndexedDatasetBuilder::create(prefix, DType::uint16).value();
  for (const int length : lengths) {
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(length));
    std::iota(tokens.begin(), tokens.end(), first);
    if (count_on) first += length;
    builder.add_item(tokens).value();
    builder.end_document().value();
  }
  builder.finalize().value();
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The first 16 digits of the SHA-256 of a file, or of numbers as little-endian int64.
inline std::string file_sum(const std::filesystem::path& path) {
  return sha256_hex(bytes_of(path)).substr(0, 16);
}
inline std::string sum_of(std::span<const std::int64_t> numbers) {
  return sha256_hex({reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()}).substr(0, 16);
}
inline std::vector<std::int64_t> numbers_of(const IndexArray& array) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < array.size(); ++row)
    for (std::int64_t column = 0; column < std::max<std::int64_t>(array.columns(), 1); ++column)
      numbers.push_back(array.at(row, column));
  return numbers;
}
inline std::string sum_of(const IndexArray& array) {
  return sum_of(numbers_of(array));
}

}  // namespace accrue::test
