// SPDX-License-Identifier: Apache-2.0
// JSON as Python's json.dumps(value, indent=4) writes it. File names are hashes of such texts, so every byte counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace accrue {

/// A written value; lines after the first are indented for the outermost level.
struct PythonJson {
  std::string text;

  static PythonJson null() { return {"null"}; }
  static PythonJson of(std::string_view value);
  static PythonJson of(std::int64_t value) { return {std::to_string(value)}; }
  static PythonJson truth(bool value) { return {value ? "true" : "false"}; }
  /// Writes the shortest digits that give the same number, like repr().
  static PythonJson of(double value);
  template <typename T>
  static PythonJson of(const std::optional<T>& value) {
    return value ? of(*value) : null();
  }
  static PythonJson list(const std::vector<PythonJson>& values);
  static PythonJson object(const std::vector<std::pair<std::string, PythonJson>>& members);
};

}  // namespace accrue
