// SPDX-License-Identifier: Apache-2.0
// JSON values of this project. The parser and the printer are templates of thousands of lines, so they are compiled
// once, for this type alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "json_limits.h"

namespace accrue {

/// An object's members keep their order.
using Json = nlohmann::ordered_json;

/// Parses a text. The result is discarded if the text is not JSON or is nested deeper than `max_depth`.
Json parse_json(std::string_view text, int max_depth = max_json_depth);

/// Prints on one line, or with `indent` spaces per level. Invalid UTF-8 becomes U+FFFD.
std::string json_text(const Json& json, int indent = -1);
/// Prints on one line, and escapes every character beyond ASCII.
std::string json_ascii(const Json& json);

}  // namespace accrue
