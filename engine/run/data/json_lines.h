// SPDX-License-Identifier: Apache-2.0
// Texts in JSON lines, as Megatron-LM's preprocess_data.py reads them: one object per line, with a document's text
// under a key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

/// Returns the texts of a line's document: one, or all of the list under the key; none for a line of white space.
/// Errors (data), without a place: the line is not a JSON object, or the value under the key is not a text.
/// option: that names the key, for the hint.
Result<std::vector<std::string>> texts_of_json_line(std::string_view line, const std::string& key,
                                                    std::string_view option = "--json-keys");

}  // namespace accrue
