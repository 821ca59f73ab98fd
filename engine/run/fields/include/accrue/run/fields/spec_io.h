// SPDX-License-Identifier: Apache-2.0
// Text form of RunSpec. Reading collects every problem before it fails; writing omits defaults, unless annotated.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

struct SpecField;

/// Maximum size of a spec. Larger ones are refused before parsing, because nested TOML can exhaust a parser's stack.
inline constexpr std::size_t max_spec_bytes = std::size_t{64} * 1024;

/// Place of a key's value in the text; line 0 if --set replaced it.
struct KeyPosition {
  std::string key;
  int line = 0;
  int column = 0;
  bool operator==(const KeyPosition&) const = default;
};

struct SpecReading {
  RunSpec spec;                   ///< default value for a key with a finding
  std::vector<Finding> findings;  ///< every problem, in file order
  std::string file;               ///< file name in findings
  std::vector<KeyPosition> keys;  ///< every known key that the text sets, in its order
  bool ok() const { return !has_errors(findings); }
};

/// Parses a spec. file_name appears in findings.
SpecReading parse_spec(std::string_view toml, std::string file_name);
/// Reads a file. A missing, unreadable, empty or too large file is a finding too. A relative data.path is kept as
/// written.
SpecReading read_spec(const std::filesystem::path& file);

/// Adds the place of the key to findings about a whole spec (preflight's), if the file sets the key.
void locate_findings(std::vector<Finding>& findings, const SpecReading& reading);

/// Applies one "--set key=value" (the value as in TOML; a bare word is a string). Adds problems to findings.
void set_field(RunSpec& spec, std::string_view assignment, std::vector<Finding>& findings);
/// Does the same for a spec that was read: later findings about the key refer to --set, not to the text.
void set_field(SpecReading& reading, std::string_view assignment);

/// Writes the spec as TOML: the format version and every key that differs from its default.
std::string write_spec(const RunSpec& spec);
/// Returns every key with its default, unit, range and help as comments, for "accrue-run spec --defaults".
std::string annotated_defaults();
/// Does the same for one key, below its section.
std::string annotated_default(const SpecField& field);
/// Returns the JSON Schema (draft 2020-12) of a spec, for "accrue-run spec --schema".
std::string json_schema();

}  // namespace accrue
