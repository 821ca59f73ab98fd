// SPDX-License-Identifier: Apache-2.0
// Names of every spec enum in one place, in value order, for the reader, the writer, the form and the schema.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Names of an enum's values as spelled in specs and events; index = value. choice_names.cpp's table specialises it for
/// every spec enum.
template <typename E>
std::span<const std::string_view> choice_names();

/// Returns the name; empty for a value that no spec can name.
template <typename E>
std::string_view to_name(E value) {
  const auto names = choice_names<E>();
  const auto at = static_cast<std::size_t>(value);
  return at < names.size() ? names[at] : std::string_view();
}

template <typename E>
std::optional<E> from_name(std::string_view name) {
  const auto names = choice_names<E>();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace accrue
