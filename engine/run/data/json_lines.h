// SPDX-License-Identifier: Apache-2.0
// Texts in JSON lines, the format that Megatron-LM's preprocess_data.py reads: an object a line, and the text of a
// document under one of its keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

/// The texts of a line's document: one, or as many as the list under the key has; none of a line of white space.
/// Errors (data), without a place: the line is no JSON object, or what stands under the key is no text.
Result<std::vector<std::string>> texts_of_json_line(std::string_view line, const std::string& key);

}  // namespace accrue
