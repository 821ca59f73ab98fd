// SPDX-License-Identifier: Apache-2.0
// Helpers of every program that uses the library: environment variables, and the exit on a fatal error.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "accrue/run/base/printable.h"
#include "accrue/run/base/result.h"

namespace accrue {

/// Returns the variable's value; none if it is not set.
inline std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// Returns the value. On an error, prints its text to standard error and ends the program with its exit status. Only
/// for main() and its helpers; a library returns the Result.
template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", printable(result.error().text()).c_str());
    std::exit(exit_status(result.error().code));
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace accrue
