// SPDX-License-Identifier: Apache-2.0
// Words about fields and values that reader, writer, schema and preflight share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "accrue/run/findings.h"
#include "accrue/run/spec_fields.h"

namespace accrue::spec_detail {

/// The shortest decimal that reads back as the same double, as TOML writes it: "0.1", "3e-4", "25.0".
std::string real_text(double number);
/// Without the ".0" of a whole number, for ranges and list elements.
std::string number_text(double number);
/// A TOML basic string with its quotes.
std::string in_quotes(std::string_view text);
/// Lower case, dashes as underscores, no leading dashes: how names of other tools are compared.
std::string folded(std::string_view name);
/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(std::string_view left, std::string_view right);
/// The nearest of some names, empty if none is near.
std::string_view nearest_of(std::span<const std::string_view> names, std::string_view name);

/// What fits a field: "a whole number from 1 to 1048576", "one of accrue, llm, ...".
std::string expected_text(const SpecField& field);
/// What is wrong with a value whose alternative fits the field's type: out of range, not a choice, not finite. Fills
/// key, message, found, expected and fix_value.
std::optional<Finding> check_value(const SpecField& field, const SpecValue& value);

}  // namespace accrue::spec_detail
