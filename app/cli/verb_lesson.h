// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "accrue/run/run_plan.h"

namespace accrue::cli {

struct LessonOptions {
  std::string file;
  bool check = false;
};
int go_through_lesson(const LessonOptions& options);

/// The plan of a spec that was not read from a file of its own; relative paths start in base_dir. Errors go to standard
/// error, and are without a place. Empty when the spec is refused.
std::optional<RunPlan> plan_of(const RunSpec& spec, const std::filesystem::path& base_dir);

}  // namespace accrue::cli
