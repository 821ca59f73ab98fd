// SPDX-License-Identifier: Apache-2.0
#include "precompiled_map.h"

#include <unicode/ubrk.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace accrue::tokenize {
namespace {

/// A cluster with so many bytes or more is looked up one character at a time.
constexpr std::size_t long_cluster = 6;

std::optional<std::string> from_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char each : text) {
    if (each == '=') break;
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto value = letters.find(each);
    if (value == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(held >> bits & 0xFF));
  }
  return bytes;
}

class PrecompiledMap {
 public:
  static std::optional<PrecompiledMap> of(const std::string& bytes) {
    PrecompiledMap map;
    std::uint32_t size = 0;
    if (bytes.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, bytes.data(), sizeof size);
    if (size == 0 || size % sizeof(std::uint32_t) != 0 || size > bytes.size() - sizeof size) return std::nullopt;
    map.units_.resize(size / sizeof(std::uint32_t));
    std::memcpy(map.units_.data(), bytes.data() + sizeof size, size);
    map.texts_ = bytes.substr(sizeof size + size);
    return map;
  }

  /// The text for the shortest beginning of a character or cluster that has one.
  std::optional<std::string_view> find(std::string_view key) const {
    std::size_t at = offset(units_[0]);
    for (const char each : key) {
      const auto byte = static_cast<unsigned char>(each);
      at ^= byte;
      if (byte == 0 || at >= units_.size() || label(units_[at]) != byte) return std::nullopt;
      const bool ends = (units_[at] >> 8 & 1) != 0;
      at ^= offset(units_[at]);
      if (ends) return at < units_.size() ? text_at(units_[at] & 0x7FFFFFFF) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static std::size_t offset(std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & (1U << 9)) >> 6); }
  static std::uint32_t label(std::uint32_t unit) { return unit & (1U << 31 | 0xFF); }

  std::optional<std::string_view> text_at(std::size_t begin) const {
    if (begin >= texts_.size()) return std::nullopt;
    return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;  ///< each ends in a zero
};

class Clusters {
 public:
  explicit Clusters(const Text& text) {
    UErrorCode error = U_ZERO_ERROR;
    iterator_.reset(ubrk_open(UBRK_CHARACTER, "", text.data(), static_cast<std::int32_t>(text.size()), &error));
    if (U_FAILURE(error)) iterator_.reset();
  }
  explicit operator bool() const { return iterator_ != nullptr; }
  /// End of the next cluster, or none.
  std::optional<std::size_t> next() {
    const std::int32_t end = ubrk_next(iterator_.get());
    return end == UBRK_DONE ? std::nullopt : std::optional(static_cast<std::size_t>(end));
  }

 private:
  struct Close {
    void operator()(UBreakIterator* iterator) const { ubrk_close(iterator); }
  };
  std::unique_ptr<UBreakIterator, Close> iterator_;
};

void append_mapped(const PrecompiledMap& map, std::u16string_view cluster, Text& result) {
  const std::string bytes = to_utf8(cluster);
  if (bytes.size() < long_cluster)
    if (const auto found = map.find(bytes)) {
      result += to_utf16(*found);
      return;
    }
  each_point(cluster, [&](UChar32 point, std::size_t begin, std::size_t end) {
    const auto found = map.find(to_utf8(cluster.substr(begin, end - begin)));
    if (found)
      result += to_utf16(*found);
    else
      append_utf16(result, point);
  });
}

}  // namespace

Result<Normalizer> precompiled_map(const std::string& base64) {
  const auto bytes = from_base64(base64);
  auto map = bytes ? PrecompiledMap::of(*bytes) : std::nullopt;
  if (!map) return broken("precompiled_charsmap is no table of characters");
  return [map = *std::move(map)](Text& text, Place&) -> Result<void> {
    Clusters clusters(text);
    if (!clusters) return fail(ErrorCode::data, "ICU cannot divide the text into characters");
    Text result;
    result.reserve(text.size());
    std::size_t begin = 0;
    while (const auto end = clusters.next()) {
      append_mapped(map, std::u16string_view(text).substr(begin, *end - begin), result);
      begin = *end;
    }
    text = std::move(result);
    return {};
  };
}

}  // namespace accrue::tokenize
