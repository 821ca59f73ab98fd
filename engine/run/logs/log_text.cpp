// SPDX-License-Identifier: Apache-2.0
#include "log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "accrue/run/base/utf8.h"
#include "foreign_file.h"

namespace accrue {

namespace {

void put_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned marks[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(marks[following] | code >> (6 * following));
  for (int i = following - 1; i >= 0; --i) text += static_cast<char>(0x80U | (code >> (6 * i) & 0x3fU));
}

/// An unpaired surrogate becomes U+FFFD; an odd byte at the end is dropped.
std::string from_utf16(std::string_view bytes, bool big_endian) {
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]), second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<std::uint32_t>(big_endian ? first << 8U | second : second << 8U | first);
  };
  std::string text;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    const bool low_follows = at + 3 < bytes.size() && (unit(at + 2) & 0xfc00U) == 0xdc00U;
    if ((code & 0xfc00U) == 0xd800U && low_follows) {
      at += 2;
      code = 0x10000U + ((code & 0x3ffU) << 10U) + (unit(at) & 0x3ffU);
    } else if ((code & 0xf800U) == 0xd800U) {
      code = 0xfffd;
    }
    put_utf8(text, code);
  }
  return text;
}

}  // namespace

Result<LogText> log_text(std::string bytes, const std::string& file) {
  constexpr std::size_t looked_at = 64;
  const std::string_view all = bytes, encoding = wide_encoding(all.substr(0, looked_at));
  if (encoding == "UTF-32")
    return fail(ErrorCode::config, "is in UTF-32, which is not read", file, "Save it as UTF-8.");
  const bool is_marked = encoding == "UTF-16";
  LogText result;
  if (encoding.empty())
    result.text = std::move(bytes);
  else
    result.text = from_utf16(all.substr(is_marked ? 2 : 0), is_marked ? all.front() == '\xfe' : encoding == "UTF-16BE");
  if (result.text.starts_with(byte_order_mark)) result.text.erase(0, byte_order_mark.size());
  if (const auto nul = result.text.find('\0'); nul != std::string::npos) {
    const bool all_nul = result.text.find_first_not_of('\0', nul) == std::string::npos;
    result.problems.push_back(
        all_nul ? fmt::format("{} ends in {} NUL bytes, as after a power cut", file, result.text.size() - nul)
                : fmt::format("{} has NUL bytes from byte {} on; what follows them is not read", file, nul));
    result.text.resize(nul);
  }
  if (const auto wrong = first_not_utf8(result.text); wrong != std::string_view::npos) {
    result.problems.push_back(
        fmt::format("{} is not UTF-8 from byte {} on: such bytes are read as U+FFFD", file, wrong));
    result.text = as_utf8(std::move(result.text));
  }
  return result;
}

std::string as_utf8(std::string text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
  for (std::size_t from = 0;;) {
    const std::size_t wrong = first_not_utf8(std::string_view(text).substr(from));
    if (wrong == std::string_view::npos) return text;
    text.replace(from + wrong, 1, replacement);
    from += wrong + replacement.size();
  }
}

bool looks_like_text(std::string_view bytes) {
  constexpr std::size_t looked_at = 4096;
  return std::ranges::all_of(bytes.substr(0, looked_at), [](char each) {
    return static_cast<unsigned char>(each) >= 0x20 || (each >= '\t' && each <= '\r') || each == '\x1b' || each == '\b';
  });
}

bool is_given_up(const std::function<bool()>& go_on, std::int64_t row) {
  constexpr std::int64_t asked_every = 1024;
  return go_on && row % asked_every == 0 && !go_on();
}

tl::unexpected<Error> given_up() {
  return fail(ErrorCode::cancelled, "the import was given up");
}

TextLine take_line(std::string_view& rest) {
  const auto end = rest.find_first_of("\r\n");
  TextLine line{rest.substr(0, end), end != std::string_view::npos};
  rest.remove_prefix(line.whole ? end : rest.size());
  if (line.whole) rest.remove_prefix(rest.starts_with("\r\n") ? 2 : 1);
  return line;
}

}  // namespace accrue
