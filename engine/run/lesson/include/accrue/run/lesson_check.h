// SPDX-License-Identifier: Apache-2.0
// Whether the runs of a lesson show what a step asks for. Pure: the studio and accrue-run ask the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/run/lesson.h"
#include "accrue/run/run_facts.h"

namespace accrue {

enum class CheckState {
  open,      ///< nothing is there that could show it
  met,       ///< seen
  missed,    ///< the run shows something else
  not_here,  ///< cannot be asked: the bits belong to another processor, or there are no plots
};

struct CheckResult {
  CheckState state = CheckState::open;
  std::string found;  ///< what was seen, or what is missing and why the newest run does not count; a sentence or two
};

/// What the X axis of the plots has counted in a step; nothing where there are no plots.
using SeenClocks = std::optional<std::vector<std::string>>;

/// Of a step's check. runs: those that ended since the lesson was begun, oldest first. Of each set-up that is asked for
/// the newest finished run counts, and others do not: a check of one run asks for the answers of its step, one of
/// several runs for those of all steps. Where there are no answers every set-up counts.
CheckResult judge(const LessonCheck& check, const LessonStep& step, const Lesson& lesson,
                  const std::vector<RunFacts>& runs, const SeenClocks& clocks = std::nullopt);

/// Nothing missed, nothing open.
bool is_done(const LessonStep& step, const Lesson& lesson, const std::vector<RunFacts>& runs,
             const SeenClocks& clocks = std::nullopt);

/// A note for a class whose runs cannot reproduce the file's bits; empty where they can, or the file has none.
std::string other_processor(const Lesson& lesson, const std::vector<RunFacts>& runs);

}  // namespace accrue
