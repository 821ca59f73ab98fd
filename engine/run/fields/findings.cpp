// SPDX-License-Identifier: Apache-2.0
// A finding as one line in the compiler format, which editors and terminals make clickable.
#include "accrue/run/fields/findings.h"

#include "accrue/run/base/name_of.h"

namespace accrue {

std::string Finding::text() const {
  std::string text = file;
  if (line > 0) text += (text.empty() ? "line " : ":") + std::to_string(line) + ":" + std::to_string(column);
  if (!text.empty()) text += ": ";
  text += name_of<Severity::error>(severity, {"note", "warning", "error"});
  text += ": ";
  if (!key.empty()) text += key + ": ";
  text += message;
  if (found.empty() && expected.empty()) return text;
  text += " (";
  if (!found.empty()) text += "found " + found;
  if (!found.empty() && !expected.empty()) text += ", ";
  if (!expected.empty()) text += "expected " + expected;
  return text + ")";
}

}  // namespace accrue
