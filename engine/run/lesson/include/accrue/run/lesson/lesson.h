// SPDX-License-Identifier: Apache-2.0
// A lesson: steps for a class with one spec, with the settings and the expected results of each. It is a text file
// (*.accrue-lesson), so a teacher can write one, and "accrue-run lesson FILE --check" runs all of it.
//
//   accrue_lesson = 1          format version
//   title, teaches, minutes, number (0: it has none)
//   printed_on                 the processor that the file's hashes belong to
//   notes                      for the instructor; each step may have its own
//   spec = ''' ... '''         a spec, as in a *.accrue file
//   [layout]                   fields (keys that the form shows), panels (of the window), clock (of the plots)
//   [locked]                   "key" = a sentence that says why it is locked. No answer changes it, and the studio
//                                refuses edits of it in every panel
//   [[step]]                   title, text, hint, notes; set (keys that the step changes in the lesson's spec);
//                                answer (runs that the learner trains: a list of settings for each run)
//   [[step.check]]             says (the expected result), where (only runs with these settings), and one of
//     weights = ["2.04000"]    the last update's recorded weights, to the printed digits
//     updates = 3              number of updates
//     loss = "0.6931"          of the last update, to the printed digits
//     rates = ["0.1", "0.09"]  learning rates of the first updates, to the printed digits
//     lamp = "exact"           with reason = "mean_of_means" for its cause
//     reductions = 8           of gradients, by the first rank
//     activations = 0.5        at most this fraction of what the lesson's first run kept
//     coincide = 3             number of runs with equal losses after equal samples, to within = 1e-9 (relative)
//     part = 2                 number of runs whose losses differ somewhere
//     same_weights = 2         number of runs that end with weights that are equal to within
//     sha256 = "..."           the weights to the last bit, on an equal processor
//     clock = "sample"         the unit of the plots' X axis in this step
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

enum class CheckKind {
  weights,
  updates,
  loss,
  rates,
  lamp,
  reductions,
  activations,
  coincide,
  part,
  same_weights,
  sha256,
  clock
};

struct LessonCheck {
  CheckKind kind = CheckKind::updates;
  std::string says;
  std::vector<std::string> where;    ///< settings of the runs to which it applies, as for --set
  std::vector<std::string> printed;  ///< weights, loss, rates: the printed numbers; lamp, sha256, clock: the word
  std::string reason;                ///< lamp
  std::int64_t count = 0;            ///< updates, reductions; number of runs: coincide, part, same_weights
  double part = 1.0;                 ///< activations
  double within = 1e-9;              ///< coincide, same_weights: relative
};

struct LessonStep {
  std::string title;
  std::string text;
  std::string hint;
  std::string notes;                             ///< for the instructor
  std::vector<std::string> set;                  ///< changes to the lesson's spec
  std::vector<std::vector<std::string>> answer;  ///< changes to the step's spec, a list for each run
  std::vector<LessonCheck> checks;
};

struct Lesson {
  std::int64_t number = 0;
  std::string title;
  std::string teaches;
  std::int64_t minutes = 0;
  std::string printed_on;
  std::string notes;
  RunSpec spec;
  std::vector<std::string> fields;
  std::vector<std::string> panels;
  std::string clock;
  std::map<std::string, std::string> locked;  ///< key and reason
  std::vector<LessonStep> steps;
};

struct LessonReading {
  Lesson lesson;
  std::vector<Finding> findings;  ///< every problem with its place
  bool ok() const { return !has_errors(findings); }
};

/// Parses a lesson. file_name appears in findings.
LessonReading parse_lesson(std::string_view toml, std::string file_name);
LessonReading read_lesson(const std::filesystem::path& file);

/// Returns the lesson's spec for a step, or for one of its answers.
RunSpec spec_of(const Lesson& lesson, const LessonStep& step);
RunSpec answered(RunSpec spec, const std::vector<std::string>& settings);

}  // namespace accrue
