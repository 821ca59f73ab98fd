// SPDX-License-Identifier: Apache-2.0
// A problem of a spec or a plan: its place, the value found, the expected value, and a fix that a form can apply.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace accrue {

enum class Severity { note, warning, error };

struct Finding {
  Severity severity = Severity::error;
  std::string key;       ///< dotted key path; empty for the whole file
  std::string message;   ///< one sentence
  std::string found;     ///< value in the spec
  std::string expected;  ///< valid value
  std::string file;
  int line = 0;  ///< 1-based; 0: not from a file
  int column = 0;
  std::optional<std::string> fix_value;  ///< a valid value, as --set takes it
  bool removed = false;                  ///< only earlier versions knew the key or the choice

  bool operator==(const Finding&) const = default;
  /// "file:line:column: error: key: message (found ..., expected ...)".
  std::string text() const;
};

inline bool has_errors(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    if (finding.severity == Severity::error) return true;
  return false;
}

}  // namespace accrue
