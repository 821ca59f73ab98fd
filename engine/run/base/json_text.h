// SPDX-License-Identifier: Apache-2.0
// JSON values as they are read and written here. Parser and printer are templates of thousands of lines; they are
// compiled once, for this one kind of value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "json_limits.h"

namespace accrue {

/// Its members keep their order.
using Json = nlohmann::ordered_json;

/// What the text holds; discarded where that is no JSON, or nested deeper than `max_depth`.
Json parse_json(std::string_view text, int max_depth = max_json_depth);

/// On one line, or indented by so many spaces a level. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
/// On one line, with an escape for every character beyond ASCII.
std::string json_ascii(const Json& json);

}  // namespace accrue
