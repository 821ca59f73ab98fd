// SPDX-License-Identifier: Apache-2.0
// The one field table: a row per key of a run spec. Reader, writer, form, --set, JSON Schema, annotated defaults, diff
// and search by another tool's name all come from it; a new option is one new row.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

/// A field's value, free of its C++ member type. monostate = left out (an optional member without a value).
using SpecValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>, Matrix>;

enum class FieldType { boolean, integer, real, text, choice, integers, reals, texts, matrix };

/// The name of the same thing in another tool ("accelerate", "gradient_accumulation_steps").
struct FieldAlias {
  std::string_view system;
  std::string_view name;
};

struct SpecField {
  std::string_view key;    ///< dotted path, e.g. "accumulation.steps"
  std::string_view label;  ///< what the form shows, e.g. "Accumulation steps"
  FieldType type = FieldType::text;
  std::string_view unit;                                      ///< e.g. "samples", "MiB"; empty where there is none
  double minimum = -std::numeric_limits<double>::infinity();  ///< inclusive unless open_minimum
  double maximum = std::numeric_limits<double>::infinity();
  bool open_minimum = false;                       ///< the minimum itself is out of range (lr > 0)
  bool optional = false;                           ///< may be left out; then it is derived
  std::span<const std::string_view> choices;       ///< of a choice; of each element of a list of texts that has them
  std::span<const std::string_view> choice_notes;  ///< of each choice: what it means and which system does it; or empty
  std::string_view rows;                           ///< matrix: what one row holds, e.g. "[from, steps]"
  std::string_view help;
  std::vector<FieldAlias> aliases;
  bool advanced = false;           ///< the form folds it away
  std::optional<Dialect> dialect;  ///< a name that only this system has; elsewhere it means nothing

  std::function<SpecValue(const RunSpec&)> get;
  std::function<void(RunSpec&, const SpecValue&)>
      set;  ///< the value's alternative must fit type; monostate clears an optional field
  /// Of an optional field: the value that holds while it is left out. Empty where the plan alone knows.
  std::function<SpecValue(const RunSpec&)> derived;
  /// Whether the field has a meaning in this spec (e.g. model.layers only for gpt); the form hides it otherwise.
  std::function<bool(const RunSpec&)> applies;

  std::string_view section() const { return key.substr(0, key.find('.')); }
  std::string_view name() const { return key.substr(key.find('.') + 1); }
};

/// All fields in the order in which a spec file is written.
const std::vector<SpecField>& spec_fields();
/// nullptr if no field has that key.
const SpecField* find_field(std::string_view key);
/// Fields whose key, label or alias contains the text, best first; if there are none, those whose help does
/// (case-insensitive).
std::vector<const SpecField*> search_fields(std::string_view text);
/// Whether a name has each word of a search, in any order; spaces, hyphens and underscores are equal.
bool name_has_words(std::string_view name, std::string_view search);
/// The key nearest to a misspelt one, empty if none is near.
std::string_view nearest_key(std::string_view key);

/// A value as the spec file would show it: "4", "3e-4", "\"adamw\"", "[1, 2]"; "" for monostate.
std::string format_value(const SpecValue& value);

/// One differing key of two specs; values formatted by format_value.
struct SpecDifference {
  std::string key;
  std::string left;
  std::string right;
  bool operator==(const SpecDifference&) const = default;
};
std::vector<SpecDifference> diff_specs(const RunSpec& left, const RunSpec& right);

}  // namespace accrue
