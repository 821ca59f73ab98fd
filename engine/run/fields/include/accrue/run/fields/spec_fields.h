// SPDX-License-Identifier: Apache-2.0
// The single field table: a row per key of a run spec. The reader, the writer, the form, --set, the JSON Schema, the
// annotated defaults, diff and the search by other tools' names all use it. A new option is one new row.
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

#include "accrue/run/fields/spec.h"

namespace accrue {

/// A field's value, independent of the C++ type of its member. monostate: left out (an optional member without a
/// value).
using SpecValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>, Matrix>;

enum class FieldType { boolean, integer, real, text, choice, integers, reals, texts, matrix };

/// Name of the same setting in another tool ("accelerate", "gradient_accumulation_steps").
struct FieldAlias {
  std::string_view system;
  std::string_view name;
};

struct SpecField {
  std::string_view key;    ///< dotted path, for example "accumulation.steps"
  std::string_view label;  ///< label in the form, for example "Accumulation steps"
  FieldType type = FieldType::text;
  std::string_view unit;                                      ///< for example "samples", "MiB"; may be empty
  double minimum = -std::numeric_limits<double>::infinity();  ///< inclusive unless open_minimum
  double maximum = std::numeric_limits<double>::infinity();
  bool open_minimum = false;                  ///< the minimum itself is excluded (lr > 0)
  bool optional = false;                      ///< may be left out; then it is derived
  std::span<const std::string_view> choices;  ///< of a choice, or of each element of a list of names
  std::span<const std::string_view>
      choice_notes;       ///< for each choice: its meaning and the systems that use it; may be empty
  std::string_view rows;  ///< matrix: contents of a row, for example "[from, steps]"
  std::string_view help;
  std::vector<FieldAlias> aliases;
  bool advanced = false;           ///< the form hides it by default
  std::optional<Dialect> dialect;  ///< only this system has the name; no effect elsewhere

  std::function<SpecValue(const RunSpec&)> get;
  std::function<void(RunSpec&, const SpecValue&)>
      set;  ///< the value's alternative must match `type`; monostate clears an optional field
  /// Value of an optional field that is left out. Empty if only the plan knows it.
  std::function<SpecValue(const RunSpec&)> derived;
  /// Whether the field has an effect in this spec (for example model.layers only for gpt); otherwise the form hides it.
  std::function<bool(const RunSpec&)> applies;

  std::string_view section() const { return key.substr(0, key.find('.')); }
  std::string_view name() const { return key.substr(key.find('.') + 1); }
};

/// All fields, in the order of a written spec file.
const std::vector<SpecField>& spec_fields();
/// Returns the field of a key; nullptr if there is none.
const SpecField* find_field(std::string_view key);
/// Returns the fields whose key, label or alias contains the text, best first; if there are none, those whose help
/// does. Case-insensitive.
std::vector<const SpecField*> search_fields(std::string_view text);
/// Whether a name contains each word of a search, in any order; spaces, hyphens and underscores are equal.
bool name_has_words(std::string_view name, std::string_view search);
/// Returns the key nearest to a misspelt one; empty if none is near.
std::string_view nearest_key(std::string_view key);

/// Formats a value as a spec file does: "4", "3e-4", "\"adamw\"", "[1, 2]"; "" for monostate.
std::string format_value(const SpecValue& value);

/// A key with different values in two specs, formatted by format_value().
struct SpecDifference {
  std::string key;
  std::string left;
  std::string right;
  bool operator==(const SpecDifference&) const = default;
};
std::vector<SpecDifference> diff_specs(const RunSpec& left, const RunSpec& right);

}  // namespace accrue
