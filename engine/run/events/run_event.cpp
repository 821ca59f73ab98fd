// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/run_event.h"

#include "accrue/run/base/name_of.h"
#include "event_fields.h"

namespace accrue {
std::string_view to_string(ComputeKind kind) {
  return name_of<ComputeKind::step>(kind, {"forward", "backward", "step"});
}

std::string_view to_string(StepPhase phase) {
  return name_of<StepPhase::zero>(
      phase, {"", "forward", "scale", "backward", "reduce", "unscale", "clip", "step", "schedule", "zero"});
}

std::string_view kind_of(const EventBody& body) {
  if (const auto* unknown = std::get_if<UnknownEvent>(&body)) return unknown->kind;
  return std::visit(
      [](const auto& known) -> std::string_view {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, UnknownEvent>)
          return {};
        else
          return event_fields::kind_of_body(known);
      },
      body);
}

bool is_stored(const EventBody& body) {
  return !std::holds_alternative<Heartbeat>(body) && !std::holds_alternative<Holding>(body);
}

}  // namespace accrue
