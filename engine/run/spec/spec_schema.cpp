// SPDX-License-Identifier: Apache-2.0
// The field table as a JSON Schema, for editors that complete and check TOML.
#include <cmath>
#include <nlohmann/json.hpp>

#include "accrue/run/spec_fields.h"
#include "accrue/run/spec_io.h"

namespace accrue {

namespace {

using Json = nlohmann::ordered_json;

Json bound(double number) {
  if (number == std::trunc(number) && std::abs(number) < 1e17) return static_cast<std::int64_t>(number);
  return number;
}

Json number_schema(const SpecField& field, const char* type) {
  Json schema = {{"type", type}};
  if (std::isfinite(field.minimum)) schema[field.open_minimum ? "exclusiveMinimum" : "minimum"] = bound(field.minimum);
  if (std::isfinite(field.maximum)) schema["maximum"] = bound(field.maximum);
  return schema;
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json names_schema(const SpecField& field) {
  Json names = Json::array();
  for (const std::string_view choice : field.choices) names.push_back(std::string(choice));
  return {{"type", "string"}, {"enum", names}};
}

Json type_schema(const SpecField& field) {
  switch (field.type) {
    case FieldType::boolean:
      return {{"type", "boolean"}};
    case FieldType::integer:
      return number_schema(field, "integer");
    case FieldType::real:
      return number_schema(field, "number");
    case FieldType::text:
      return {{"type", "string"}};
    case FieldType::integers:
      return list_of(number_schema(field, "integer"));
    case FieldType::reals:
      return list_of(number_schema(field, "number"));
    case FieldType::texts:
      return list_of(field.choices.empty() ? Json{{"type", "string"}} : names_schema(field));
    case FieldType::matrix:
      return list_of(list_of({{"type", "number"}}));
    case FieldType::choice:
      break;
  }
  return names_schema(field);
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
  return root.dump(2) + "\n";
}

}  // namespace accrue
