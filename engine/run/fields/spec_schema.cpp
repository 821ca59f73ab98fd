// SPDX-License-Identifier: Apache-2.0
// The field table as a JSON Schema, for editors that complete and check TOML.
#include <cmath>

#include "accrue/run/base/name_of.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "json_text.h"

namespace accrue {

namespace {

Json bound(double number) {
  if (number == std::trunc(number) && std::abs(number) < 1e17) return static_cast<std::int64_t>(number);
  return number;
}

/// Schema of one element of a list, then of the list.
Json type_schema(const SpecField& field) {
  Json schema = {{"type", name_of<FieldType::matrix>(field.type, {"boolean", "integer", "number", "string", "string",
                                                                  "integer", "number", "string", "number"})}};
  if (!field.choices.empty()) schema["enum"] = std::vector<std::string>(field.choices.begin(), field.choices.end());
  if (std::isfinite(field.minimum)) schema[field.open_minimum ? "exclusiveMinimum" : "minimum"] = bound(field.minimum);
  if (std::isfinite(field.maximum)) schema["maximum"] = bound(field.maximum);
  const int lists = field.type == FieldType::matrix ? 2 : field.type >= FieldType::integers ? 1 : 0;
  for (int i = 0; i < lists; ++i) schema = {{"type", "array"}, {"items", Json(schema)}};
  return schema;
}

struct DefaultValue {
  Json operator()(std::monostate) const { return nullptr; }
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
};

}  // namespace

std::string json_schema() {
  const RunSpec defaults;
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Accrue run spec"},
               {"description", "One training run: model, data, optimizer, accumulation and ranks."},
               {"type", "object"},
               {"additionalProperties", false}};
  Json& sections = root["properties"];
  sections["accrue"] = {{"description", "Format version."}, {"type", "integer"}, {"const", 1}};
  for (const SpecField& field : spec_fields()) {
    Json& section = sections[std::string(field.section())];
    if (section.is_null())
      section = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
    Json schema = {{"title", std::string(field.label)}, {"description", std::string(field.help)}};
    schema.update(type_schema(field));
    const Json value = std::visit(DefaultValue(), field.get(defaults));
    if (!value.is_null()) schema["default"] = value;
    if (!field.unit.empty()) schema["x-unit"] = std::string(field.unit);
    section["properties"][std::string(field.name())] = schema;
  }
  return json_text(root, 2) + "\n";
}

}  // namespace accrue
