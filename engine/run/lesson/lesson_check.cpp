// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/lesson/lesson_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/events/lamp.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/record/curve_comparison.h"

namespace accrue {

namespace {

using Runs = std::vector<const RunFacts*>;

/// Whether applying the settings leaves the run's spec unchanged.
bool has_settings(const RunFacts& run, const std::vector<std::string>& settings) {
  return answered(run.spec, settings) == run.spec;
}

bool is_of_several(CheckKind kind) {
  return kind == CheckKind::coincide || kind == CheckKind::part || kind == CheckKind::same_weights;
}

/// Applies properties that a run may choose: any name, and the threads left by runs beside it.
RunSpec as_of(const RunFacts& run, RunSpec asked) {
  asked.run.name = run.spec.run.name;
  asked.launch.threads_per_rank = run.spec.launch.threads_per_rank;
  return asked;
}

bool has_set_up(const RunFacts& run, const RunSpec& asked) {
  return run.spec == as_of(run, asked);
}

/// Adds the step's requested set-ups, each once.
void add_asked(const Lesson& lesson, const LessonStep& step, std::vector<RunSpec>& set_ups) {
  for (const auto& settings : step.answer) {
    const RunSpec set_up = answered(spec_of(lesson, step), settings);
    if (std::ranges::find(set_ups, set_up) == set_ups.end()) set_ups.push_back(set_up);
  }
}

/// Set-ups that a check judges: for one run those of its step, for several runs those of all steps. Empty if the lesson
/// names none: then any run is judged.
std::vector<RunSpec> set_ups_of(const LessonCheck& check, const LessonStep& step, const Lesson& lesson) {
  std::vector<RunSpec> set_ups;
  if (is_of_several(check.kind))
    for (const LessonStep& each : lesson.steps) add_asked(lesson, each, set_ups);
  else
    add_asked(lesson, step, set_ups);
  const auto other = [&check](const RunSpec& set_up) { return answered(set_up, check.where) != set_up; };
  std::erase_if(set_ups, other);
  return set_ups;
}

bool has_one_of(const RunFacts& run, const std::vector<RunSpec>& set_ups) {
  return std::ranges::any_of(set_ups, [&run](const RunSpec& set_up) { return has_set_up(run, set_up); });
}

struct Asked {
  Runs runs;                          ///< newest first: the newest finished run of each set-up
  const RunFacts* another = nullptr;  ///< the newest run, if neither the check nor a sibling requests it
  std::vector<RunSpec> set_ups;
};

Asked asked(const LessonCheck& check, const LessonStep& step, const Lesson& lesson, const std::vector<RunFacts>& runs) {
  Asked result{.set_ups = set_ups_of(check, step, lesson)};
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (run->outcome != "finished" || !has_settings(*run, check.where)) continue;
    if (!result.set_ups.empty() && !has_one_of(*run, result.set_ups)) continue;
    if (std::ranges::none_of(result.runs, [&run](const RunFacts* other) { return has_set_up(*run, other->spec); }))
      result.runs.push_back(&*run);
  }
  const auto beside = set_ups_of({.kind = check.kind}, step, lesson);
  const bool counts = runs.empty() || (runs.back().outcome == "finished" && has_one_of(runs.back(), beside));
  if (!result.set_ups.empty() && !counts) result.another = &runs.back();
  return result;
}

/// Adds why the newest run does not count: "3 of 4 runs are there. The last run (Accumulation steps = 4) does not
/// count."
CheckResult still_open(std::string found, const Asked& asked) {
  if (!asked.another) return {CheckState::open, std::move(found)};
  if (asked.another->outcome != "finished")
    return {CheckState::open, found + " The last run did not finish, so it does not count."};
  std::vector<SpecDifference> fewest;
  for (const RunSpec& set_up : asked.set_ups) {
    auto differences = diff_specs(as_of(*asked.another, set_up), asked.another->spec);
    if (fewest.empty() || differences.size() < fewest.size()) fewest = std::move(differences);
  }
  std::vector<std::string> settings;
  for (const SpecDifference& difference : fewest) {
    const SpecField* field = find_field(difference.key);
    const bool short_enough = difference.right.size() <= 24;
    settings.push_back(fmt::format("{} = {}", field ? std::string(field->label) : difference.key,
                                   short_enough ? difference.right : "other values"));
  }
  return {CheckState::open, fmt::format("{} The last run ({}) does not count.", found, joined(settings))};
}

/// Prints with as many decimals as the text has.
std::string printed_like(const std::string& text, double value) {
  const auto point = text.find('.');
  const auto end = text.find_first_of("eE");
  if (end != std::string::npos) return fmt::format("{:.{}e}", value, point == std::string::npos ? 0 : end - point - 1);
  return fmt::format("{:.{}f}", value, point == std::string::npos ? 0 : text.size() - point - 1);
}

CheckResult compared(const std::vector<std::string>& wanted, const std::vector<double>& values, const char* what) {
  if (values.size() < wanted.size())
    return {CheckState::missed, fmt::format("There are {} {} of {}.", values.size(), what, wanted.size())};
  std::vector<std::string> found;
  for (std::size_t i = 0; i < wanted.size(); ++i) found.push_back(printed_like(wanted[i], values[i]));
  return {found == wanted ? CheckState::met : CheckState::missed, "Found " + joined(found) + "."};
}

std::vector<double> last_weights(const RunFacts& run) {
  for (auto update = run.updates.rbegin(); update != run.updates.rend(); ++update)
    if (!update->weights.empty()) return update->weights;
  return {};
}

CheckResult judge_weights(const LessonCheck& check, const RunFacts& run) {
  const auto weights = last_weights(run);
  if (weights.empty()) return {CheckState::missed, "The run recorded no weights (run.record_weights)."};
  return compared(check.printed, weights, "weights");
}

CheckResult judge_rates(const LessonCheck& check, const RunFacts& run) {
  std::vector<double> rates;
  for (const Update& update : run.updates) rates.push_back(update.lr.value_or(std::nan("")));
  return compared(check.printed, rates, "updates");
}

CheckResult judge_loss(const LessonCheck& check, const RunFacts& run) {
  const auto last = std::find_if(run.updates.rbegin(), run.updates.rend(),
                                 [](const Update& update) { return update.outcome != StepOutcome::skipped_empty; });
  if (last == run.updates.rend()) return {CheckState::missed, "The run made no update with a loss."};
  return compared(check.printed, {last->loss}, "losses");
}

CheckResult judge_count(std::int64_t wanted, std::int64_t found, const char* what) {
  return {wanted == found ? CheckState::met : CheckState::missed, "Found " + counted(found, what) + "."};
}

CheckResult judge_lamp(const LessonCheck& check, const RunFacts& run) {
  const ExactnessCheck* worst = worst_of(run.checks);
  if (!worst) return {CheckState::missed, "No window was checked (evaluate.exactness_every)."};
  const auto light = to_string(light_of(*worst));
  const bool met = light == check.printed.front() && (check.reason.empty() || check.reason == worst->reason);
  std::string found = fmt::format("The lamp says: {}.", lamp_word(*worst));
  if (!worst->message.empty()) found += " " + worst->message;
  return {met ? CheckState::met : CheckState::missed, std::move(found)};
}

CheckResult judge_activations(const LessonCheck& check, const RunFacts& run, const std::vector<RunFacts>& runs) {
  const auto first = std::ranges::find_if(runs, [](const RunFacts& each) { return each.activation_bytes > 0; });
  if (first == runs.end() || run.activation_bytes == 0)
    return {CheckState::missed, "The run was too short to be measured."};
  const double part = static_cast<double>(run.activation_bytes) / static_cast<double>(first->activation_bytes);
  return {part <= check.part ? CheckState::met : CheckState::missed,
          fmt::format("It kept {}, {:.0f} % of the first run's {}.", format_bytes(run.activation_bytes), 100.0 * part,
                      format_bytes(first->activation_bytes))};
}

/// Infinity if one is not finite: such values coincide only with the same infinity.
double relative(double a, double b) {
  if (a == b) return 0.0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  const double scale = std::max(std::abs(a), std::abs(b));
  return std::abs(a - b) / scale;
}

LossCurve curve_of_losses(const RunFacts& run) {
  LossCurve curve;
  for (const Update& update : run.updates)
    if (update.outcome != StepOutcome::skipped_empty)
      curve.points.push_back({update.update, update.samples, update.loss});
  return curve;
}

/// Distance of two runs at common points; none if there are none.
std::optional<double> loss_distance(const RunFacts& left, const RunFacts& right) {
  std::optional<double> distance;
  for (const SharedPoint& point : compare_pair(curve_of_losses(left), curve_of_losses(right)).points)
    distance = std::max(distance.value_or(0.0), relative(point.first, point.second));
  return distance;
}

/// Distance of two runs' final weights; none if one recorded no weights.
std::optional<double> weight_distance(const RunFacts& left, const RunFacts& right) {
  const auto a = last_weights(left);
  const auto b = last_weights(right);
  if (a.empty() || a.size() != b.size()) return std::nullopt;
  double distance = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) distance = std::max(distance, relative(a[i], b[i]));
  return distance;
}

CheckResult judge_several(const LessonCheck& check, const Asked& asked) {
  const Runs& runs = asked.runs;
  const auto wanted = static_cast<std::size_t>(check.count);
  if (runs.size() < wanted) return still_open(fmt::format("{} of {} runs are there.", runs.size(), wanted), asked);
  double largest = 0.0;
  for (std::size_t i = 0; i + 1 < wanted; ++i) {
    const auto distance = check.kind == CheckKind::same_weights ? weight_distance(*runs[i], *runs[wanted - 1])
                                                                : loss_distance(*runs[i], *runs[wanted - 1]);
    if (!distance) return {CheckState::missed, "Two of the runs have nothing in common that could be compared."};
    largest = std::max(largest, *distance);
  }
  const bool alike = largest <= check.within;
  if (!std::isfinite(largest))
    return {check.kind == CheckKind::part ? CheckState::met : CheckState::missed,
            "A value of one of the runs is not finite."};
  return {alike == (check.kind != CheckKind::part) ? CheckState::met : CheckState::missed,
          largest == 0.0 ? "They are equal to the last digit."
                         : fmt::format("The largest relative difference is {:.1e}.", largest)};
}

CheckResult judge_bits(const LessonCheck& check, const Lesson& lesson, const RunFacts& run) {
  if (run.processor != lesson.printed_on)
    return {CheckState::not_here, fmt::format("The last bits belong to another processor ({}); this one is {}.",
                                              lesson.printed_on, run.processor)};
  return {run.weights_sha256 == check.printed.front() ? CheckState::met : CheckState::missed,
          "Found " + run.weights_sha256.substr(0, 12) + "."};
}

CheckResult judge_clock(const LessonCheck& check, const SeenClocks& clocks) {
  if (!clocks) return {CheckState::not_here, "Only the studio has plots."};
  return std::ranges::find(*clocks, check.printed.front()) != clocks->end()
             ? CheckResult{CheckState::met, "Found in the plots."}
             : CheckResult{CheckState::open, "The X axis has not counted them in this step."};
}

}  // namespace

CheckResult judge(const LessonCheck& check, const LessonStep& step, const Lesson& lesson,
                  const std::vector<RunFacts>& runs, const SeenClocks& clocks) {
  if (check.kind == CheckKind::clock) return judge_clock(check, clocks);
  const Asked candidates = asked(check, step, lesson, runs);
  if (is_of_several(check.kind)) return judge_several(check, candidates);
  if (candidates.runs.empty()) return still_open("No such run has ended yet.", candidates);
  const RunFacts& run = *candidates.runs.front();
  switch (check.kind) {
    case CheckKind::weights:
      return judge_weights(check, run);
    case CheckKind::updates:
      return judge_count(check.count, std::ssize(run.updates), "update");
    case CheckKind::loss:
      return judge_loss(check, run);
    case CheckKind::rates:
      return judge_rates(check, run);
    case CheckKind::lamp:
      return judge_lamp(check, run);
    case CheckKind::reductions:
      return judge_count(check.count, run.reductions, "reduction");
    case CheckKind::activations:
      return judge_activations(check, run, runs);
    case CheckKind::sha256:
      return judge_bits(check, lesson, run);
    default:
      return {};
  }
}

bool is_done(const LessonStep& step, const Lesson& lesson, const std::vector<RunFacts>& runs,
             const SeenClocks& clocks) {
  return std::ranges::all_of(step.checks, [&](const LessonCheck& check) {
    const CheckState state = judge(check, step, lesson, runs, clocks).state;
    return state == CheckState::met || state == CheckState::not_here;
  });
}

std::string other_processor(const Lesson& lesson, const std::vector<RunFacts>& runs) {
  if (lesson.printed_on.empty() || runs.empty() || runs.back().processor == lesson.printed_on) return {};
  return fmt::format(
      "This processor ({}) is not the one that the lesson was printed on ({}): the printed digits agree, the last bits "
      "need not.",
      runs.back().processor, lesson.printed_on);
}

}  // namespace accrue
