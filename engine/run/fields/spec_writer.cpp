// SPDX-License-Identifier: Apache-2.0
// RunSpec -> TOML. Only values that differ from the defaults are written. So a spec is as short as possible, and two
// specs with the same meaning have the same text.
#include <algorithm>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/fields/spec_io.h"
#include "spec_text.h"

namespace accrue {

namespace {

// "# " lines of at most 100 characters.
std::string comment(std::string_view text) {
  std::string result = "#";
  std::size_t column = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column + 1 + end > 100) result += "\n#", column = 1;
    result += " " + std::string(text.substr(0, end));
    column += 1 + end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result + "\n";
}

std::string aliases_text(const SpecField& field) {
  std::string text;
  for (const FieldAlias& alias : field.aliases)
    text += (text.empty() ? "Elsewhere: " : ", ") + std::string(alias.name) + " (" + std::string(alias.system) + ")";
  return text;
}

std::string annotated(const SpecField& field, const SpecValue& value) {
  std::string facts = spec_detail::expected_text(field);
  facts[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(facts[0])));
  if (!field.unit.empty()) facts += ", in " + std::string(field.unit);
  if (field.optional) facts += "; may be left out";
  std::string text = comment(field.help) + comment(facts + ".");
  if (!field.aliases.empty()) text += comment(aliases_text(field) + ".");
  const std::string name(field.name());
  const bool left_out = std::holds_alternative<std::monostate>(value);
  return text + (left_out ? "# " + name + " =\n" : name + " = " + format_value(value) + "\n");
}

/// Whether no key of a section has a default. Its heading alone would enable the plug-in with its defaults.
bool is_left_out(std::string_view section) {
  const RunSpec defaults;
  return std::ranges::all_of(spec_fields(), [&](const SpecField& field) {
    return field.section() != section || std::holds_alternative<std::monostate>(field.get(defaults));
  });
}

}  // namespace

std::string write_spec(const RunSpec& spec) {
  const RunSpec defaults;
  std::string text = "accrue = " + std::to_string(spec.accrue) + "\n";
  std::string_view section;
  for (const SpecField& field : spec_fields()) {
    const SpecValue value = field.get(spec);
    if (value == field.get(defaults)) continue;
    if (section != field.section()) text += "\n[" + std::string(field.section()) + "]\n";
    section = field.section();
    text += std::string(field.name()) + " = " + format_value(value) + "\n";
  }
  return text;
}

std::string annotated_default(const SpecField& field) {
  return "[" + std::string(field.section()) + "]\n" + annotated(field, field.get(RunSpec()));
}

std::string annotated_defaults() {
  const RunSpec defaults;
  std::string text = comment("Every key of a run spec with its default. What a spec leaves out has the value below.") +
                     "\n" + comment("Format version.") + "accrue = 1\n";
  std::string_view section;
  for (const SpecField& field : spec_fields()) {
    text += "\n";
    if (section != field.section())
      text += (is_left_out(field.section()) ? "# [" : "[") + std::string(field.section()) + "]\n";
    section = field.section();
    text += annotated(field, field.get(defaults));
  }
  return text;
}

}  // namespace accrue
