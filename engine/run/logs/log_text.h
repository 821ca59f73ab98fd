// SPDX-License-Identifier: Apache-2.0
// The text of a log file: UTF-8 without a byte-order mark, up to where the file is damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

struct LogText {
  std::string text;
  std::vector<std::string> problems;  ///< what was left out
};
/// From UTF-8 or UTF-16, with or without a byte-order mark. At the first NUL, as a power cut leaves them at the end of
/// a file, the text ends. Errors (config): UTF-32.
Result<LogText> log_text(std::string bytes, const std::string& file);

/// Whether bytes are a text: no control characters but those of lines, tabs and terminals at the beginning.
bool looks_like_text(std::string_view bytes);

/// Whether go_on says no: asked at every 1024th row, of 0 on.
bool is_given_up(const std::function<bool()>& go_on, std::int64_t row = 0);
/// The error of a reader that ends so.
tl::unexpected<Error> given_up();

/// Takes the next line off the text, without its end. `whole`: an end of line followed.
struct TextLine {
  std::string_view text;
  bool whole = false;
};
TextLine take_line(std::string_view& rest);

/// What is not UTF-8 becomes U+FFFD, byte by byte.
std::string as_utf8(std::string text);

}  // namespace accrue
