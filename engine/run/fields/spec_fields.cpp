// SPDX-License-Identifier: Apache-2.0
// The whole field table, in the order of a spec file. spec_fields_<section>.cpp has the rows of each section. Built
// once, on first use, and never changed.
#include "accrue/run/fields/spec_fields.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <unordered_map>

#include "accrue/run/base/number_text.h"
#include "spec_field_list.h"
#include "spec_text.h"

namespace accrue {

namespace {

std::vector<SpecField> make_fields() {
  field_detail::FieldList list;
  list.fields.reserve(256);
  field_detail::add_model_fields(list);
  field_detail::add_data_fields(list);
  field_detail::add_optimizer_fields(list);
  field_detail::add_schedule_fields(list);
  field_detail::add_accumulation_fields(list);
  field_detail::add_knob_fields(list);
  field_detail::add_dialect_fields(list);
  field_detail::add_run_fields(list);
  field_detail::add_megatron_fields(list);
  return std::move(list.fields);
}

/// Normalises text for search: spaces, hyphens and underscores are equal.
std::string searchable(std::string_view text) {
  std::string same = spec_detail::folded(text);
  std::ranges::replace(same, ' ', '_');
  const auto repeated = std::ranges::unique(same, [](char left, char right) { return left == '_' && right == '_'; });
  same.erase(repeated.begin(), repeated.end());
  return same;
}

bool contains(std::string_view text, std::string_view wanted) {
  return searchable(text).find(wanted) != std::string::npos;
}

/// Whether each wanted word occurs, in any order.
bool has_words(std::string_view text, std::string_view wanted) {
  return std::ranges::all_of(wanted | std::views::split('_'),
                             [&](auto word) { return contains(text, std::string_view(word.begin(), word.end())); });
}

bool has_word(std::string_view text, std::string_view wanted) {
  constexpr std::string_view between = " -_.()/";
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(between), text.size());
    if (end > 0 && spec_detail::folded(text.substr(0, end)) == wanted) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

constexpr int help_rank = 12;

// Lower is better; 0: no match.
int search_rank(const SpecField& field, std::string_view wanted) {
  const auto is = [&](std::string_view name) { return searchable(name) == wanted; };
  // The plug-in's names are another tool's; an ordinary field with such a name comes first.
  const bool plugin = field.section() == "megatron";
  if (is(field.key) || (is(field.label) && !plugin)) return 1;
  if (is(field.name()) && !plugin) return 2;
  for (const FieldAlias& alias : field.aliases)
    if (is(alias.name)) return plugin ? 4 : 3;
  if (is(field.label)) return 4;
  if (searchable(field.label).starts_with(wanted)) return 5;
  if (has_word(field.label, wanted) || has_word(field.key, wanted)) return 6;
  if (contains(field.key, wanted)) return 7;
  if (contains(field.label, wanted)) return 8;
  for (const FieldAlias& alias : field.aliases)
    if (contains(alias.name, wanted) || is(alias.system)) return 9;
  std::vector<std::string_view> names = {field.key, field.label};
  for (const FieldAlias& alias : field.aliases) names.push_back(alias.name);
  if (std::ranges::any_of(names, [&](std::string_view name) { return has_words(name, wanted); })) return 10;
  if (has_words(joined(names, " "), wanted)) return 11;
  return has_words(field.help, wanted) ? help_rank : 0;
}

template <typename List, typename Format>
std::string format_list(const List& list, Format format) {
  return "[" + joined(list, ", ", format) + "]";
}

}  // namespace

const RunSpec& field_detail::default_spec() {
  static const RunSpec defaults;
  return defaults;
}

const std::vector<SpecField>& spec_fields() {
  static const std::vector<SpecField> fields = make_fields();
  return fields;
}

const SpecField* find_field(std::string_view key) {
  static const std::unordered_map<std::string_view, const SpecField*> by_key = [] {
    std::unordered_map<std::string_view, const SpecField*> map;
    for (const SpecField& field : spec_fields()) map.emplace(field.key, &field);
    return map;
  }();
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : found->second;
}

std::vector<const SpecField*> search_fields(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const std::string wanted = searchable(text);
  if (wanted.empty()) return {};
  std::array<std::vector<const SpecField*>, help_rank + 1> by_rank;
  for (const SpecField& field : spec_fields())
    by_rank[static_cast<std::size_t>(search_rank(field, wanted))].push_back(&field);
  std::vector<const SpecField*> found;
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    if (rank == help_rank && !found.empty()) break;
    // Among equals, fields that the form shows initially come first.
    std::ranges::stable_partition(by_rank[rank], [](const SpecField* field) { return !field->advanced; });
    found.insert(found.end(), by_rank[rank].begin(), by_rank[rank].end());
  }
  return found;
}

bool name_has_words(std::string_view name, std::string_view search) {
  return has_words(name, searchable(search));
}

std::string_view nearest_key(std::string_view key) {
  const auto dot = key.find('.');
  std::string_view name = dot == std::string_view::npos ? key : key.substr(dot + 1);
  // Spelling of the fields in Accelerate's configuration files.
  if (constexpr std::string_view prefix = "megatron_lm_"; name.starts_with(prefix)) {
    name.remove_prefix(prefix.size());
    if (const SpecField* field = find_field("megatron." + std::string(name))) return field->key;
  }
  // The right name in the wrong section is nearer than any misspelling, if only one section has it.
  std::vector<std::string_view> keys;
  for (const SpecField& field : spec_fields())
    if (field.name() == name && field.section() != "megatron") keys.push_back(field.key);
  if (keys.empty() && find_field("megatron." + std::string(name)) != nullptr)
    return find_field("megatron." + std::string(name))->key;
  if (keys.size() == 1) return keys.front();
  keys.clear();
  for (const SpecField& field : spec_fields())
    if (dot != std::string_view::npos && field.section() == key.substr(0, dot)) keys.push_back(field.name());
  const std::string_view near = spec_detail::nearest_of(keys, name);
  if (!near.empty()) return find_field(std::string(key.substr(0, dot)) + "." + std::string(near))->key;
  // A right section suggests nothing for a name that resembles none of its own.
  if (!keys.empty()) return {};
  for (const SpecField& field : spec_fields()) keys.push_back(field.key);
  return spec_detail::nearest_of(keys, key);
}

std::string format_value(const SpecValue& value) {
  using namespace spec_detail;
  struct Visitor {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return real_text(number); }
    std::string operator()(const std::string& text) const { return in_quotes(text); }
    std::string operator()(const std::vector<std::int64_t>& list) const {
      return format_list(list, [](std::int64_t number) { return std::to_string(number); });
    }
    std::string operator()(const std::vector<double>& list) const { return format_list(list, number_text); }
    std::string operator()(const std::vector<std::string>& list) const { return format_list(list, in_quotes); }
    std::string operator()(const Matrix& rows) const {
      return format_list(rows, [](const std::vector<double>& row) { return format_list(row, number_text); });
    }
  };
  return std::visit(Visitor(), value);
}

std::vector<SpecDifference> diff_specs(const RunSpec& left, const RunSpec& right) {
  std::vector<SpecDifference> differences;
  for (const SpecField& field : spec_fields()) {
    const SpecValue a = field.get(left);
    const SpecValue b = field.get(right);
    if (a != b) differences.push_back({std::string(field.key), format_value(a), format_value(b)});
  }
  return differences;
}

}  // namespace accrue
