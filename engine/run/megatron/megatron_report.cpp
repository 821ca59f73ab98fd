// SPDX-License-Identifier: Apache-2.0
// The fields of the plug-in as a table for people, and as JSON for programs.
#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/megatron/megatron_lowering.h"
#include "json_text.h"
#include "spec_text.h"

namespace accrue {

namespace {

std::string shown(const SpecValue& value) {
  const std::string text = format_value(value);
  return text.empty() ? "None" : text;
}

std::string origin_text(const MegatronValue& value) {
  const std::string origin(to_string(value.origin));
  if (value.origin == FieldOrigin::other_megatron_args && value.from.empty()) return origin;
  return value.from.empty() ? origin : fmt::format("{}: {}", origin, value.from);
}

bool is_relative(const SpecValue& path) {
  const auto* text = std::get_if<std::string>(&path);
  return text != nullptr && !text->starts_with('/');
}

std::string effect_text(const MegatronEffect& effect) {
  if (!effect.nothing.empty()) return "changes nothing: " + effect.nothing;
  if (effect.keys.empty()) return "what a plug-in library registers under that name (" + effect.consumers + ")";
  std::string text;
  for (const LoweredKey& key : effect.keys)
    if (!key.differs) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key.key, shown(key.value));
  if (effect.name == "tensorboard_dir" && is_relative(effect.value.value)) text += ", in the run folder";
  return text + fmt::format(" ({})", effect.consumers);
}

void append_line(std::string& out, const MegatronEffect& effect, std::size_t width) {
  out +=
      fmt::format("  {:<{}}  {:<10}  {}\n", effect.name, width, shown(effect.value.value), origin_text(effect.value));
  out += fmt::format("  {:<{}}    {}\n", "", width, effect_text(effect));
  if (!effect.remark.empty()) out += fmt::format("  {:<{}}    {}\n", "", width, effect.remark);
}

Json value_json(const SpecValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

Json effect_json(const MegatronEffect& effect) {
  Json keys = Json::object();
  for (const LoweredKey& key : effect.keys)
    if (!key.differs) keys[std::string(key.key)] = value_json(key.value);
  return {{"name", effect.name},
          {"value", value_json(effect.value.value)},
          {"origin", to_string(effect.value.origin)},
          {"from", effect.value.from},
          {"sets", std::move(keys)},
          {"consumer", effect.consumers},
          {"changes", effect.nothing.empty()},
          {"nothing", effect.nothing},
          {"remark", effect.remark}};
}

std::string_view type_name(FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return "bool";
    case FieldType::integer:
      return "int";
    case FieldType::real:
      return "float";
    case FieldType::integers:
      return "list of int";
    case FieldType::texts:
      return "list of str";
    default:
      return "str";
  }
}

}  // namespace

void remark_effects(LoweredMegatron& lowered, const std::vector<Finding>& findings) {
  for (MegatronEffect& effect : lowered.fields)
    for (const Finding& finding : findings)
      if (finding.severity != Severity::error && effect.nothing.empty() && finding.key == "megatron." + effect.name)
        effect.remark += (effect.remark.empty() ? "" : "; ") + finding.message;
}

std::string megatron_report(const LoweredMegatron& lowered) {
  if (lowered.fields.empty())
    return "The spec sets no field of the Megatron-LM plug-in: there is no [megatron] in it.\n";
  std::string out;
  std::size_t width = 0;
  for (const MegatronEffect& effect : lowered.fields) width = std::max(width, effect.name.size());
  for (int group = 0; group <= static_cast<int>(MegatronGroup::others); ++group) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", title(static_cast<MegatronGroup>(group)));
    for (const MegatronEffect& effect : lowered.fields)
      if (static_cast<int>(effect.value.field->group) == group && effect.name != "other_megatron_args")
        append_line(out, effect, width);
    if (group != static_cast<int>(MegatronGroup::others)) continue;
    if (lowered.arguments.empty()) out += "  other_megatron_args  None\n";
    for (const MegatronEffect& effect : lowered.arguments) append_line(out, effect, width);
  }
  return out;
}

std::string megatron_json(const LoweredMegatron& lowered) {
  Json fields = Json::array();
  Json arguments = Json::array();
  for (const MegatronEffect& effect : lowered.fields) fields.push_back(effect_json(effect));
  for (const MegatronEffect& effect : lowered.arguments) arguments.push_back(effect_json(effect));
  return json_text(Json{{"fields", std::move(fields)}, {"other_megatron_args", std::move(arguments)}}, 2);
}

std::string megatron_reference() {
  std::string out = "Fields of MegatronLMPlugin, as keys of [megatron] in a spec\n";
  for (const MegatronField& field : megatron_fields())
    out += fmt::format("\n{} ({}, default {}{}{})\n    {}\n", field.name, type_name(field.spec_field().type),
                       shown(field.fallback), field.environment.empty() ? "" : ", variable ", field.environment,
                       field.spec_field().help);
  out += "\nArguments that other_megatron_args takes\n\n";
  for (const MegatronArgument& argument : megatron_arguments()) {
    std::string what;
    if (!argument.field.empty())
      what = fmt::format("overrides {}", argument.field);
    else if (!argument.key.empty())
      what = fmt::format("sets {}", argument.key);
    else if (argument.only.empty())
      what = argument.why;
    else if (argument.only == "-")
      what = fmt::format("not offered: {}", argument.why);
    else
      what = fmt::format("{} alone: {}", argument.only, argument.why);
    out += fmt::format("{} ({}): {}\n", argument.name, type_name(argument.type), what);
  }
  return out;
}

}  // namespace accrue
