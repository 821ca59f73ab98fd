// SPDX-License-Identifier: Apache-2.0
// RunSpec <-> text. Reading collects every problem before it gives up; writing keeps only what differs from the
// defaults, unless annotated.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/findings.h"
#include "accrue/run/run_spec.h"

namespace accrue {

struct SpecField;

/// Specs larger than this are refused before they are parsed (nested TOML can exhaust a parser's stack).
inline constexpr std::size_t max_spec_bytes = 64 * 1024;

/// Where a key's value stands in the text; line 0 where --set gave it another.
struct KeyPosition {
  std::string key;
  int line = 0;
  int column = 0;
  bool operator==(const KeyPosition&) const = default;
};

struct SpecReading {
  RunSpec spec;                   ///< defaults where a key had a finding
  std::vector<Finding> findings;  ///< every problem, in the order of the file
  std::string file;               ///< what findings show
  std::vector<KeyPosition> keys;  ///< every known key that the text sets, in its order
  bool ok() const { return !has_errors(findings); }
};

/// Parses a spec. file_name is what findings show.
SpecReading parse_spec(std::string_view toml, std::string file_name);
/// Reads a file: missing, unreadable, empty and too large files are findings too. Relative data.path is kept as
/// written.
SpecReading read_spec(const std::filesystem::path& file);

/// Gives findings about a spec as a whole (preflight's) the place where their key stands, if the file sets it.
void locate_findings(std::vector<Finding>& findings, const SpecReading& reading);

/// Applies one "--set key=value" (value as in TOML; a bare word is taken as a string). Reports into findings.
void set_field(RunSpec& spec, std::string_view assignment, std::vector<Finding>& findings);
/// The same for a spec that was read: what is found of the key from now on is found of --set, not of the text.
void set_field(SpecReading& reading, std::string_view assignment);

/// The spec as TOML: the format version and every key that differs from its default.
std::string write_spec(const RunSpec& spec);
/// Every key with its default, unit, range and help as comments: what "accrue-run spec --defaults" prints.
std::string annotated_defaults();
/// The same of one key, below its section.
std::string annotated_default(const SpecField& field);
/// JSON Schema (draft 2020-12) of a spec: what "accrue-run spec --schema" prints.
std::string json_schema();

}  // namespace accrue
