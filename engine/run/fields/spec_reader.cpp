// SPDX-License-Identifier: Apache-2.0
// TOML -> RunSpec, by the field table alone. toml++ parses and keeps the place of every key and value. A key with a
// problem keeps its default and reading continues, so one pass reports everything that is wrong with a file; only
// broken TOML and a newer format version end it at once.
#include "spec_reader.h"

#define TOML_IMPLEMENTATION
#include "toml_parser.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <system_error>
#include <tuple>

#include "accrue/run/fields/spec_fields.h"
#include "missing_keys.h"
#include "spec_text.h"
#include "toml_prescan.h"
#include "trimmed.h"

namespace accrue {

namespace {

using spec_detail::check_value;
using spec_detail::expected_text;
using spec_detail::folded;
using spec_detail::in_quotes;
using spec_detail::nearest_of;

constexpr std::int64_t format_version = 1;
/// Replaces the file name for a value from the command line.
constexpr const char* set_option = "--set";

std::string describe(const toml::node& node) {
  if (const auto* text = node.as_string())
    return "the string " + in_quotes(std::string_view(text->get()).substr(0, 60));
  if (const auto* whole = node.as_integer()) return "the whole number " + std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return "the number " + spec_detail::real_text(real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a section";
  return "a date or time";
}

// Returns a list of T from a TOML array; none if an element has another type.
template <typename T, typename Convert>
std::optional<std::vector<T>> list_of(const toml::node& node, Convert convert) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<T> list;
  list.reserve(array->size());
  for (const toml::node& element : *array) {
    auto value = convert(element);
    if (!value) return std::nullopt;
    list.push_back(std::move(*value));
  }
  return list;
}

std::optional<std::int64_t> whole_of(const toml::node& node) {
  return node.value_exact<std::int64_t>();
}

std::optional<double> real_of(const toml::node& node) {
  if (const auto whole = whole_of(node)) return static_cast<double>(*whole);
  return node.value_exact<double>();
}

template <typename T>
std::optional<SpecValue> some(std::optional<T> value) {
  if (!value) return std::nullopt;
  return SpecValue(std::move(*value));
}

// Returns the value as the field's alternative; none if the types do not match.
std::optional<SpecValue> value_of(FieldType type, const toml::node& node) {
  const auto text_of = [](const toml::node& element) { return element.value_exact<std::string>(); };
  switch (type) {
    case FieldType::boolean:
      return some(node.value_exact<bool>());
    case FieldType::integer:
      return some(whole_of(node));
    case FieldType::real:
      return some(real_of(node));
    case FieldType::text:
    case FieldType::choice:
      return some(text_of(node));
    case FieldType::integers:
      return some(list_of<std::int64_t>(node, whole_of));
    case FieldType::reals:
      return some(list_of<double>(node, real_of));
    case FieldType::texts:
      return some(list_of<std::string>(node, text_of));
    case FieldType::matrix:
      return some(
          list_of<std::vector<double>>(node, [](const toml::node& row) { return list_of<double>(row, real_of); }));
  }
  return std::nullopt;
}

// Guesses the intended value for a wrong type with a clear meaning: "4" or 4.0 for 4, 1 for true, w for "w".
std::optional<std::string> meant_value(const SpecField& field, const toml::node& node) {
  if (const auto real = node.value_exact<double>(); real && field.type == FieldType::integer)
    if (*real == std::trunc(*real) && std::abs(*real) < 1e15) return spec_detail::number_text(*real);
  const auto text = node.value_exact<std::string>();
  if (!text) return std::nullopt;
  if (field.type == FieldType::boolean && (folded(*text) == "true" || folded(*text) == "false")) return folded(*text);
  if (field.type != FieldType::integer && field.type != FieldType::real) return std::nullopt;
  toml::parse_result parsed = toml::parse("v = " + (text->size() > 30 ? std::string("x") : *text));
  if (!parsed || parsed.table().size() != 1) return std::nullopt;
  const auto value = value_of(field.type, *parsed.table().get("v"));
  return value && !check_value(field, *value) ? std::optional(format_value(*value)) : std::nullopt;
}

// Guesses the key behind another tool's name, a misspelling or a misplaced key.
std::string hint_for(std::string_view key) {
  const auto dot = key.find('.');
  const std::string name = folded(dot == std::string_view::npos ? key : key.substr(dot + 1));
  for (const SpecField& field : spec_fields())
    for (const FieldAlias& alias : field.aliases)
      if (folded(alias.name) == name)
        return std::string(field.key) + " (which " + std::string(alias.system) + " calls " + std::string(alias.name) +
               ")";
  return std::string(nearest_key(key));
}

Finding unknown_key(const std::string& key, std::string found) {
  if (const auto* removed = spec_detail::removed_key(key))
    return {.key = key, .message = "was removed: leave it out, as " + std::string(removed->advice), .removed = true};
  const std::string_view missing = spec_detail::missing_parallelism(std::string_view(key).substr(key.find('.') + 1));
  if (!missing.empty()) return {.key = key, .message = "is not offered: " + std::string(missing)};
  std::string meant = hint_for(key);
  if (meant.empty()) meant = "a key that \"accrue-run spec --defaults\" lists";
  return {.key = key, .message = "is not a key of a spec", .found = std::move(found), .expected = std::move(meant)};
}

/// Sets the field, or returns why the value is invalid.
std::optional<Finding> take_value(RunSpec& spec, const SpecField& field, const toml::node& node) {
  const auto value = value_of(field.type, node);
  if (!value)
    return Finding{.key = std::string(field.key),
                   .message = "has the wrong type",
                   .found = describe(node),
                   .expected = expected_text(field),
                   .fix_value = meant_value(field, node)};
  if (auto problem = check_value(field, *value)) return problem;
  field.set(spec, *value);
  return std::nullopt;
}

class Reader {
 public:
  Reader(SpecReading& reading) : reading_(reading) {
    for (const SpecField& field : spec_fields())
      if (sections_.empty() || sections_.back() != field.section()) sections_.push_back(field.section());
  }

  void read(const toml::table& root) {
    if (!version_is_known(root)) return;
    for (const auto& [key, node] : root) {
      if (key.str() == "accrue") continue;
      if (std::ranges::find(sections_, key.str()) == sections_.end()) {
        unknown_section(key, node);
      } else if (const toml::table* section = node.as_table()) {
        for (const auto& [name, value] : *section)
          read_key(std::string(key.str()) + "." + std::string(name.str()), name, value);
        // The plug-in's own defaults apply if the section exists; this field keeps an empty section.
        if (key.str() == "megatron" && section->empty()) reading_.spec.megatron.is_train_batch_min = true;
      } else {
        const std::string name(key.str());
        add(node.source(), {.key = name,
                            .message = "is a section, not a value",
                            .found = describe(node),
                            .expected = "[" + name + "] with keys below it"});
      }
    }
    const auto by_place = [](const auto& a, const auto& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    };
    std::ranges::stable_sort(reading_.findings, by_place);
    std::ranges::stable_sort(reading_.keys, by_place);
  }

 private:
  void add(const toml::source_region& place, Finding finding) {
    finding.file = reading_.file;
    finding.line = static_cast<int>(place.begin.line);
    finding.column = static_cast<int>(place.begin.column);
    reading_.findings.push_back(std::move(finding));
  }

  bool version_is_known(const toml::table& root) {
    const toml::node* node = root.get("accrue");
    if (node == nullptr) return true;
    const auto version = whole_of(*node);
    if (version == format_version) return true;
    const std::string known = std::to_string(format_version);
    if (version && *version > format_version)
      add(node->source(), {.key = "accrue",
                           .message = "the file has a newer format version than this program reads",
                           .found = "version " + std::to_string(*version),
                           .expected = "version " + known + ", or a newer Accrue"});
    else
      add(node->source(), {.key = "accrue",
                           .message = "is not a format version",
                           .found = describe(*node),
                           .expected = known,
                           .fix_value = known});
    return false;
  }

  void unknown_section(const toml::key& key, const toml::node& node) {
    const std::string name(key.str());
    const std::string_view near = nearest_of(sections_, name);
    const std::string meant = node.is_table() ? (near.empty() ? "" : "[" + std::string(near) + "]") : hint_for(name);
    std::string all;
    for (const std::string_view section : sections_)
      all += (all.empty() ? "one of the sections " : ", ") + std::string(section);
    add(key.source(), {.key = name,
                       .message = node.is_table() ? "is not a section of a spec" : "is not a key of a spec",
                       .found = name,
                       .expected = meant.empty() ? all : meant});
  }

  void read_key(const std::string& path, const toml::key& key, const toml::node& node) {
    const SpecField* field = find_field(path);
    if (field == nullptr) return add(key.source(), unknown_key(path, std::string(key.str())));
    reading_.keys.push_back(
        {path, static_cast<int>(node.source().begin.line), static_cast<int>(node.source().begin.column)});
    if (auto problem = take_value(reading_.spec, *field, node)) add(node.source(), std::move(*problem));
  }

  SpecReading& reading_;
  std::vector<std::string_view> sections_;
};

Finding whole_file(const std::string& file, std::string message, std::string found = {}, std::string expected = {}) {
  return {.message = std::move(message), .found = std::move(found), .expected = std::move(expected), .file = file};
}

std::string key_of(std::string_view assignment) {
  return std::string(trimmed(assignment.substr(0, assignment.find('='))));
}

Finding syntax_finding(const std::string& file, const toml::parse_error& error) {
  std::string what(error.description());
  std::replace(what.begin(), what.end(), '\n', ' ');
  const bool twice = what.find("redefine") != std::string::npos;
  Finding finding = twice ? whole_file(file, "a key or section is given twice", what, "each key once")
                          : whole_file(file, "the file is not valid TOML: " + spec_detail::toml_words(what));
  finding.line = static_cast<int>(error.source().begin.line);
  finding.column = static_cast<int>(error.source().begin.column);
  return finding;
}

}  // namespace

namespace spec_detail {

SpecReading parse_spec_text(std::string_view toml, std::string file_name, std::size_t max_bytes) {
  SpecReading reading;
  reading.file = std::move(file_name);
  if (toml.size() > max_bytes) {
    reading.findings.push_back(whole_file(reading.file, "the spec is too large", std::to_string(toml.size()) + " bytes",
                                          "at most " + std::to_string(max_bytes) + " bytes"));
  } else if (trimmed(toml).empty()) {
    reading.findings.push_back(whole_file(reading.file, "the spec is empty", "", "at least the line accrue = 1"));
  } else if (auto deep = prescan_toml(toml)) {
    deep->file = reading.file;
    reading.findings.push_back(std::move(*deep));
  } else {
    const toml::parse_result parsed = toml::parse(toml, std::string_view(reading.file));
    if (parsed)
      Reader(reading).read(parsed.table());
    else
      reading.findings.push_back(syntax_finding(reading.file, parsed.error()));
  }
  return reading;
}

}  // namespace spec_detail

SpecReading parse_spec(std::string_view toml, std::string file_name) {
  return spec_detail::parse_spec_text(toml, std::move(file_name), max_spec_bytes);
}

SpecReading read_spec(const std::filesystem::path& file) {
  const auto refuse = [&](std::string message, std::string found = {}, std::string expected = {}) {
    SpecReading reading;
    reading.file = file.string();
    reading.findings.push_back(whole_file(reading.file, std::move(message), std::move(found), std::move(expected)));
    return reading;
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return refuse("the spec does not exist", {}, "the path of a *.accrue file");
  if (!std::filesystem::is_regular_file(status))
    return refuse("the spec is not a file", std::filesystem::is_directory(status) ? "a folder" : error.message(),
                  "a *.accrue file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return refuse("the spec cannot be read", std::generic_category().message(errno), "a readable file");
  std::string text(max_spec_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) return refuse("the spec cannot be read", "an input error", "a readable file");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > max_spec_bytes) {
    const auto size = std::filesystem::file_size(file, error);
    return refuse("the spec is too large", std::to_string(size) + " bytes",
                  "at most " + std::to_string(max_spec_bytes) + " bytes");
  }
  return parse_spec(text, file.string());
}

void locate_findings(std::vector<Finding>& findings, const SpecReading& reading) {
  for (Finding& finding : findings) {
    if (finding.line > 0 || finding.key.empty()) continue;
    const auto at = std::ranges::find(reading.keys, finding.key, &KeyPosition::key);
    const bool in_file = at != reading.keys.end() && at->line > 0;
    finding.file = at == reading.keys.end() || in_file ? reading.file : set_option;
    if (in_file) std::tie(finding.line, finding.column) = std::pair(at->line, at->column);
  }
}

void set_field(RunSpec& spec, std::string_view assignment, std::vector<Finding>& findings) {
  const auto refuse = [&findings](Finding finding) {
    finding.file = set_option;
    findings.push_back(std::move(finding));
  };
  const auto equals = assignment.find('=');
  const std::string key = key_of(assignment);
  const std::string found(assignment.substr(0, 80));
  if (equals == std::string_view::npos)
    return refuse({.key = key, .message = "has no value", .found = found, .expected = "key=value"});
  const SpecField* field = find_field(key);
  if (field == nullptr) return refuse(unknown_key(key, found));
  const std::string text(trimmed(assignment.substr(equals + 1)));
  const bool names = field->type == FieldType::text || field->type == FieldType::choice;
  if (text.empty() && (field->optional || !names)) return field->set(spec, SpecValue());
  if (text.size() > max_spec_bytes)
    return refuse({.key = key, .message = "is too long", .expected = expected_text(*field)});
  if (const auto problem = spec_detail::prescan_toml(text))
    return refuse({.key = key, .message = problem->message, .expected = expected_text(*field)});
  toml::parse_result parsed = toml::parse("v = " + text);
  const toml::value<std::string> bare(text);
  const bool literal = parsed && parsed.table().size() == 1 && !(names && !parsed.table().get("v")->is_string());
  const toml::node& node = literal ? *parsed.table().get("v") : static_cast<const toml::node&>(bare);
  if (auto problem = take_value(spec, *field, node)) refuse(std::move(*problem));
}

void set_field(SpecReading& reading, std::string_view assignment) {
  set_field(reading.spec, assignment, reading.findings);
  const std::string key = key_of(assignment);
  std::erase_if(reading.keys, [&key](const KeyPosition& at) { return at.key == key; });
  reading.keys.push_back({.key = key});
}

}  // namespace accrue
