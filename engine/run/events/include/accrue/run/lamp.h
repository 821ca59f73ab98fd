// SPDX-License-Identifier: Apache-2.0
// The lamp beside a run: what its checks against the one-batch gradient come to. The studio, a lesson and accrue-run
// judge by it alike.
#pragma once

#include <string_view>
#include <vector>

#include "accrue/run/run_event.h"

namespace accrue {

/// By rising concern. close also covers costs that change no number (needless reductions, the schedule's pace) and a
/// deliberate bug that had nothing to act on.
enum class LampLight { off, exact, close, different };
/// "off", "exact", "close", "not exact".
std::string_view to_string(LampLight light);

/// Of one check.
LampLight light_of(const ExactnessCheck& check);
/// What the lamp says of one check. Amber has several causes, and "close" is the word of one: "exact, bug idle",
/// "exact, at a cost", "exact, wrong pace", "cannot be exact" are the others.
std::string_view lamp_word(const ExactnessCheck& check);
/// The check that decides: the worst so far, the largest difference among equals; nullptr before the first.
const ExactnessCheck* worst_of(const std::vector<ExactnessCheck>& checks);

}  // namespace accrue
