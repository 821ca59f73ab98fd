// SPDX-License-Identifier: Apache-2.0
#include "json_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "json_text.h"
#include "trimmed.h"

namespace accrue {
namespace {

/// Lists the keys of an object, for a message.
std::string keys_of(const Json& object) {
  constexpr std::size_t most_shown = 8;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [key, value] : object.items()) {
    if (shown++ == most_shown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + json_ascii(key.substr(0, 40));
  }
  return text.empty() ? "no key" : text;
}

}  // namespace

Result<std::vector<std::string>> texts_of_json_line(std::string_view line, const std::string& key,
                                                    std::string_view option) {
  if (trimmed(line).empty()) return std::vector<std::string>{};
  const Json json = parse_json(line);
  if (!json.is_object())
    return fail(ErrorCode::data, "the line is not a JSON object", {},
                "Give an object a line, in UTF-8; jq -c '.[]' writes the entries of a list so");
  const auto found = json.find(key);
  if (found == json.end())
    return fail(ErrorCode::data, fmt::format("the object has no key \"{}\", but {}", key, keys_of(json)), {},
                fmt::format("Name the key of the text with {}", option));
  std::vector<std::string> texts;
  const auto take = [&texts](const Json& each) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
    return each.is_string();
  };
  const bool good = found->is_array() ? std::ranges::all_of(*found, take) : take(*found);
  if (!good)
    return fail(ErrorCode::data, fmt::format("what stands under \"{}\" is neither a text nor a list of texts", key), {},
                fmt::format("Name the key of the text with {}", option));
  return texts;
}

}  // namespace accrue
