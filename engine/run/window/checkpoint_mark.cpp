// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/checkpoint_mark.h"

#include <charconv>

namespace accrue {
namespace {

/// Parses the whole text as an integer; -1 if it is not one.
std::int64_t whole(std::string_view text) {
  std::int64_t number = -1;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && at == text.data() + text.size() && number >= 0 ? number : -1;
}

}  // namespace

std::string checkpoint_name(const CheckpointMark& mark) {
  return "step-" + std::to_string(mark.update) + (mark.position > 0 ? "+" + std::to_string(mark.position) : "");
}

CheckpointMark checkpoint_mark(std::string_view name) {
  if (!name.starts_with("step-")) return {};
  name.remove_prefix(5);
  const auto plus = name.find('+');
  const CheckpointMark mark{whole(name.substr(0, plus)),
                            plus == std::string_view::npos ? 0 : whole(name.substr(plus + 1))};
  const bool named = plus == std::string_view::npos || mark.position > 0;
  return mark.update >= 0 && named ? mark : CheckpointMark{};
}

bool keeps_place_in_window(const AccumulationKnobs& knobs) {
  if (knobs.checkpoint_scope != CheckpointScope::nothing) return true;
  return knobs.boundary_compare == BoundaryCompare::modulo && !knobs.replays(Replay::restart_count);
}

}  // namespace accrue
