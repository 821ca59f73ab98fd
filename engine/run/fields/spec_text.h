// SPDX-License-Identifier: Apache-2.0
// Texts about fields and values, shared by the reader, the writer, the schema and preflight.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue::spec_detail {

/// Returns the shortest decimal that reads back as the same double, in TOML notation: "0.1", "3e-4", "25.0".
std::string real_text(double number);
/// Returns a number without the ".0" of an integer, for ranges and list elements.
std::string number_text(double number);
/// Returns a TOML basic string with its quotes.
std::string in_quotes(std::string_view text);
/// Normalises names of other tools for comparison: lower case, dashes as underscores, no leading dashes.
std::string folded(std::string_view name);
/// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view left, std::string_view right);
/// Returns the nearest of several names; empty if none is near.
std::string_view nearest_of(std::span<const std::string_view> names, std::string_view name);

/// Describes valid values of a field: "a whole number from 1 to 1048576", "one of accrue, llm, ...".
std::string expected_text(const SpecField& field);
/// Checks a value whose alternative matches the field's type: out of range, not a choice, not finite. Fills key,
/// message, found, expected and fix_value.
std::optional<Finding> check_value(const SpecField& field, const SpecValue& value);

}  // namespace accrue::spec_detail
