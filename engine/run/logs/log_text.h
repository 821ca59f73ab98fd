// SPDX-License-Identifier: Apache-2.0
// Text of a log file: UTF-8 without a byte-order mark, up to the first damage.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct LogText {
  std::string text;
  std::vector<std::string> problems;  ///< parts that were skipped
};
/// Converts from UTF-8 or UTF-16, with or without a byte-order mark. The text ends at the first NUL, which a power cut
/// can leave at the end of a file. Errors (config): UTF-32.
Result<LogText> log_text(std::string bytes, const std::string& file);

/// Whether bytes are a text: their beginning has no control characters except those of lines, tabs and terminals.
bool looks_like_text(std::string_view bytes);

/// Whether go_on returned false. It is called at row 0 and every 1024th row.
bool is_given_up(const std::function<bool()>& go_on, std::int64_t row = 0);
/// Makes the error of a cancelled reader.
tl::unexpected<Error> given_up();

/// A line of a text, without its end.
struct TextLine {
  std::string_view text;
  bool whole = false;  ///< a line end followed
};
/// Takes the next line from the text.
TextLine take_line(std::string_view& rest);

/// Replaces every byte that is not valid UTF-8 by U+FFFD.
std::string as_utf8(std::string text);

}  // namespace accrue
