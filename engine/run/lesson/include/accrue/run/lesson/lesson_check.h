// SPDX-License-Identifier: Apache-2.0
// Judges whether the runs of a lesson show what a step expects. Pure: the studio and accrue-run share it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accrue/run/lesson/lesson.h"
#include "accrue/run/lesson/run_facts.h"

namespace accrue {

enum class CheckState {
  open,      ///< no run could show it yet
  met,       ///< seen
  missed,    ///< the run shows something else
  not_here,  ///< cannot be judged: the bits belong to another processor, or there are no plots
};

struct CheckResult {
  CheckState state = CheckState::open;
  std::string
      found;  ///< the observation, or what is missing and why the newest run does not count; one or two sentences
};

/// Units that the X axis of the plots had in a step; empty if there are no plots.
using SeenClocks = std::optional<std::vector<std::string>>;

/// Judges a step's check. runs: those that ended since the lesson began, oldest first. Of each requested set-up the
/// newest finished run counts; other set-ups do not. A check of one run uses the answers of its step, a check of
/// several runs those of all steps. Without answers every set-up counts.
CheckResult judge(const LessonCheck& check, const LessonStep& step, const Lesson& lesson,
                  const std::vector<RunFacts>& runs, const SeenClocks& clocks = std::nullopt);

/// Whether no check is missed or open.
bool is_done(const LessonStep& step, const Lesson& lesson, const std::vector<RunFacts>& runs,
             const SeenClocks& clocks = std::nullopt);

/// Returns a note for a class whose runs cannot reproduce the file's bits; empty if they can, or if the file has none.
std::string other_processor(const Lesson& lesson, const std::vector<RunFacts>& runs);

}  // namespace accrue
