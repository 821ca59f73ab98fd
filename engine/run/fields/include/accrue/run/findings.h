// SPDX-License-Identifier: Apache-2.0
// A finding: one problem of a spec or a plan, with the place, what was found, what would be right, and the fix a form
// can apply.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace accrue {

enum class Severity { note, warning, error };

struct Finding {
  Severity severity = Severity::error;
  std::string key;       ///< dotted key path; empty where the whole file is meant
  std::string message;   ///< one sentence
  std::string found;     ///< what stands there
  std::string expected;  ///< what would be right
  std::string file;
  int line = 0;  ///< 1-based; 0 = not from a file
  int column = 0;
  std::optional<std::string> fix_value;  ///< a value that would correct it, as --set takes it
  bool removed = false;                  ///< only earlier versions know the key, or the choice found

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
