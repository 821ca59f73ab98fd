// SPDX-License-Identifier: Apache-2.0
// Reading a tokenizer.json: parts of any type, and the two ways in which a file is refused.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "accrue/run/base/result.h"

namespace accrue::tokenize {

using nlohmann::json;

/// The value of a key; null if there is none.
inline const json& part_of(const json& object, const char* key) {
  static const json nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

inline std::string text_of(const json& part, const char* key) {
  const json& text = part_of(part, key);
  return text.is_string() ? text.get<std::string>() : std::string();
}

inline std::string type_of(const json& part) {
  return part.is_object() ? text_of(part, "type") : std::string();
}

inline bool flag_of(const json& part, const char* key, bool otherwise) {
  const json& flag = part_of(part, key);
  return flag.is_boolean() ? flag.get<bool>() : otherwise;
}

/// Shortens a name in a message to one line.
inline std::string shown(const std::string& text) {
  return json(text.substr(0, 80)).dump(-1, ' ', true, json::error_handler_t::replace);
}

inline tl::unexpected<Error> broken(const std::string& what) {
  return fail(ErrorCode::data, "the tokenizer.json is damaged: " + what, {}, "Give the file as it was published");
}

inline tl::unexpected<Error> unsupported(const std::string& what) {
  return fail(ErrorCode::data, "the tokenizer.json asks for what is not supported: " + what, {},
              "Give sentencepiece:MODEL if it has one, or make the dataset with Megatron-LM's preprocess_data.py");
}

}  // namespace accrue::tokenize
