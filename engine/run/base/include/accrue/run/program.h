// SPDX-License-Identifier: Apache-2.0
// What every program that uses the library needs: the environment as the library reads it, and the
// end of a program that cannot go on.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "accrue/run/printable.h"
#include "accrue/run/result.h"

namespace accrue {

/// The variable's value, as rank_identity() and others read it; none where it is not set.
inline std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// The value; where there is an error, prints its text on standard error and ends the program with its exit status. For
/// main() and what only it calls; a library uses the Result.
template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", printable(result.error().text()).c_str());
    std::exit(exit_status(result.error().code));
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace accrue
