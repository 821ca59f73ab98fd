// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/steps_record.h"

#include <variant>

namespace accrue {

bool take_steps(WindowShape& shape, const RunEvent& event) {
  if (event.rank > 0) return false;
  if (const auto* changed = std::get_if<StepsChanged>(&event.body)) {
    shape.set_steps_after(changed->update, changed->steps, changed->repeated);
    return true;
  }
  const auto* started = std::get_if<RunStarted>(&event.body);
  if (started == nullptr || !started->resumed) return false;
  const std::size_t before = shape.steps_set.size();
  shape.forget_steps_after(started->resumed_update);
  return shape.steps_set.size() != before;
}

}  // namespace accrue
