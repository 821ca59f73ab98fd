// SPDX-License-Identifier: Apache-2.0
// lesson: prints a lesson for people, or runs it like a learner: trains every answer in a temporary folder, and
// evaluates each step's checks.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "accrue/run/host/engine_host.h"
#include "accrue/run/lesson/lesson_check.h"
#include "print.h"
#include "run_follower.h"
#include "scratch_folder.h"
#include "spec_input.h"
#include "verb_lesson.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

namespace fs = std::filesystem;

void print_text(const std::string& text) {
  if (!text.empty()) put("%s%s", text.c_str(), text.back() == '\n' ? "" : "\n");
}

void print_lesson(const Lesson& lesson) {
  if (lesson.number > 0) put("Lesson %lld: ", static_cast<long long>(lesson.number));
  print_text(lesson.title);
  print_text(lesson.teaches);
  for (std::size_t i = 0; i < lesson.steps.size(); ++i) {
    const LessonStep& step = lesson.steps[i];
    put("\n%zu. %s\n", i + 1, step.title.c_str());
    print_text(step.text);
    for (const LessonCheck& check : step.checks) put("   [ ] %s\n", check.says.c_str());
  }
}

const char* mark_of(CheckState state) {
  switch (state) {
    case CheckState::met:
      return "[x]";
    case CheckState::not_here:
      return "[-]";
    default:
      return "[ ]";
  }
}

/// Trains one answer; returns an exit status.
int train(const RunSpec& spec, const fs::path& base_dir, const fs::path& run_dir, std::vector<RunFacts>& runs) {
  auto plan = plan_of(spec, base_dir);
  if (!plan) return status_refused;
  EngineHost host({});
  if (const auto started = host.start({std::move(*plan), run_dir}); !started) return report(started.error());
  FollowOptions quiet;
  quiet.style = ProgressView::Style::quiet;
  if (const int status = follow(host, quiet); status != status_done) return status;
  auto facts = read_run_facts(run_dir);
  if (!facts) return report(facts.error());
  runs.push_back(std::move(*facts));
  return status_done;
}

int check_lesson(const Lesson& lesson, const fs::path& file) {
  block_handled_signals();
  const ScratchFolder scratch("lesson");
  if (scratch.path().empty()) return report({ErrorCode::disk, "no temporary folder can be made", "", ""});
  const fs::path base_dir = fs::absolute(file).parent_path();
  std::vector<RunFacts> runs;
  bool all = true;
  for (std::size_t i = 0; i < lesson.steps.size(); ++i) {
    const LessonStep& step = lesson.steps[i];
    put("%zu. %s\n", i + 1, step.title.c_str());
    for (const auto& settings : step.answer) {
      const fs::path run_dir = scratch.path() / ("run-" + std::to_string(runs.size() + 1));
      const int status = train(answered(spec_of(lesson, step), settings), base_dir, run_dir, runs);
      if (status != status_done) return status;
    }
    for (const LessonCheck& check : step.checks) {
      const CheckResult result = judge(check, step, lesson, runs);
      put("   %s %s  %s\n", mark_of(result.state), check.says.c_str(), result.found.c_str());
    }
    std::fflush(stdout);
    all = all && is_done(step, lesson, runs);
  }
  if (const std::string other = other_processor(lesson, runs); !other.empty()) print_text(other);
  put("%s\n", all ? "Every step shows what it asks for." : "Not every step shows what it asks for.");
  return all ? status_done : exit_status(ErrorCode::numerics);
}

}  // namespace

int go_through_lesson(const LessonOptions& options) {
  const LessonReading reading = read_lesson(options.file);
  for (const Finding& finding : reading.findings) say("%s\n", finding.text().c_str());
  if (!reading.ok()) return status_refused;
  if (options.check) return check_lesson(reading.lesson, options.file);
  print_lesson(reading.lesson);
  return status_done;
}

}  // namespace accrue::cli
