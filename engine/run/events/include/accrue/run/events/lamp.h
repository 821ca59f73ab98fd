// SPDX-License-Identifier: Apache-2.0
// The lamp beside a run: the verdict of its checks against the one-batch gradient. The studio, lessons and accrue-run
// judge by it alike.
#pragma once

#include <string_view>
#include <vector>

#include "accrue/run/events/run_event.h"

namespace accrue {

/// In order of rising concern. close also covers costs that change no number (needless reductions, the schedule's pace)
/// and a deliberate bug without an effect.
enum class LampLight { off, exact, close, different };
/// "off", "exact", "close", "not exact".
std::string_view to_string(LampLight light);

/// Light of one check.
LampLight light_of(const ExactnessCheck& check);
/// Text of the lamp for one check. Amber has several causes, and "close" is only one of them. The others are "exact,
/// bug idle", "exact, at a cost", "exact, wrong pace" and "cannot be exact".
std::string_view lamp_word(const ExactnessCheck& check);
/// Returns the deciding check: the worst so far, and among equals the one with the largest difference; nullptr before
/// the first.
const ExactnessCheck* worst_of(const std::vector<ExactnessCheck>& checks);

}  // namespace accrue
