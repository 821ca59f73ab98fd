// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/events/lamp.h"

#include <algorithm>

#include "accrue/run/base/name_of.h"

namespace accrue {

std::string_view to_string(LampLight light) {
  return name_of<LampLight::different>(light, {"off", "exact", "close", "not exact"});
}

LampLight light_of(const ExactnessCheck& check) {
  if (check.verdict == "not") return LampLight::different;
  return check.verdict == "close" || !check.reason.empty() ? LampLight::close : LampLight::exact;
}

std::string_view lamp_word(const ExactnessCheck& check) {
  const LampLight light = light_of(check);
  if (light != LampLight::close) return to_string(light);
  if (check.reason == "bug_idle") return "exact, bug idle";
  if (check.reason == "schedule_clock") return "exact, wrong pace";
  if (check.verdict == "exact") return "exact, at a cost";
  return check.reason.empty() || check.reason == "order_of_sums" ? "close" : "cannot be exact";
}

const ExactnessCheck* worst_of(const std::vector<ExactnessCheck>& checks) {
  const auto worst = std::ranges::max_element(checks, [](const ExactnessCheck& a, const ExactnessCheck& b) {
    const LampLight left = light_of(a);
    const LampLight right = light_of(b);
    return left != right ? left < right : a.relative < b.relative;
  });
  return worst == checks.end() ? nullptr : &*worst;
}

}  // namespace accrue
