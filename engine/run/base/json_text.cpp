// SPDX-License-Identifier: Apache-2.0
#include "json_text.h"

namespace accrue {

Json parse_json(std::string_view text, int max_depth) {
  if (json_depth(text, max_depth) > max_depth) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_ascii(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace accrue
