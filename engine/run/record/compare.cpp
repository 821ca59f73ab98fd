// SPDX-License-Identifier: Apache-2.0
// Runs with different windows report at different updates; they share the number of samples seen. Each run is compared
// with the first at equal samples, or at equal updates if a log lacks them. So nothing is interpolated and every
// difference is real.
#include "accrue/run/record/compare.h"

#include <algorithm>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/events/steps_record.h"
#include "accrue/run/fields/loss_difference.h"
#include "json_number.h"
#include "json_text.h"

namespace accrue {
namespace {

Json to_json(const ComparedPoint& point, ComparisonClock clock) {
  Json json;
  json[std::string(to_name(clock))] = point.at;
  json["losses"] = Json::array();
  for (const auto& loss : point.losses) json["losses"].push_back(loss ? json_number(*loss) : Json(nullptr));
  return json;
}

/// Writes it with the losses of all runs.
Json to_json(const std::optional<SharedPoint>& point, const RunComparison& comparison) {
  if (!point) return nullptr;
  const auto whole = std::ranges::lower_bound(comparison.points, point->at, {}, &ComparedPoint::at);
  return to_json(*whole, comparison.clock);
}

std::vector<LossPoint> curve_of(const RunCourse& course) {
  std::vector<LossPoint> curve;
  curve.reserve(course.updates.size());
  for (const auto& [number, update] : course.updates)
    if (update.outcome != StepOutcome::skipped_empty)  // the loss of a window without a label is meaningless
      curve.push_back({number, update.samples, update.loss});
  return curve;
}

/// "2 after update 12, 8 after update 20"
std::string steps_text(const std::vector<LengthChange>& steps_set) {
  std::string text;
  for (const LengthChange& each : steps_set)
    text += (text.empty() ? "" : ", ") + std::to_string(each.steps) + " after update " + std::to_string(each.from);
  return text.empty() ? "never" : text;
}

}  // namespace

Result<RunCourse> read_course(const std::filesystem::path& run_dir) {
  auto file = EventFile::open(run_dir / "events.jsonl");
  if (!file) return tl::unexpected(file.error());
  RunCourse course;
  WindowShape shape;
  bool read_any = false;
  do {
    for (const auto& event : file->poll()) {
      read_any = true;
      take_steps(shape, event);
      if (event.rank > 0) continue;
      if (const auto* update = std::get_if<Update>(&event.body)) {
        Update& kept = course.updates[update->update] = *update;
        kept.weights.clear();
        if (kept.outcome == StepOutcome::skipped_empty) kept.losses.clear();  // they are meaningless too
      } else if (const auto* evaluation = std::get_if<Evaluation>(&event.body)) {
        course.evaluations[evaluation->update] = *evaluation;
      }
    }
  } while (!file->at_end());
  file->finish();
  course.steps_set = std::move(shape.steps_set);
  course.problems = file->problems();
  if (auto readable = check_readable(course.problems, read_any, run_dir / "events.jsonl"); !readable)
    return tl::unexpected(readable.error());
  return course;
}

Result<std::vector<LossPoint>> loss_curve(const std::filesystem::path& run_dir) {
  auto course = read_course(run_dir);
  if (!course) return tl::unexpected(course.error());
  return curve_of(*course);
}

Result<RunComparison> compare_runs(const std::vector<std::filesystem::path>& dirs) {
  if (dirs.size() < 2) return fail(ErrorCode::config, "two run folders at least are needed for a comparison");
  RunComparison comparison;
  std::vector<LossCurve> curves;
  std::string first_steps;
  for (const auto& dir : dirs) {
    auto run = read_run(dir);
    if (!run) return tl::unexpected(run.error());
    auto course = read_course(run->dir);
    if (!course) return tl::unexpected(course.error());
    curves.push_back({run->run_id, run->branched_from, curve_of(*course)});
    run->problems =
        record_problems(*run, course->problems, course->updates.empty() ? 0 : course->updates.rbegin()->first);
    const std::string steps = steps_text(course->steps_set);
    if (comparison.runs.empty()) first_steps = steps;
    auto& differences = comparison.differences.emplace_back();
    if (!comparison.runs.empty()) differences = diff_specs(comparison.runs.front().spec, run->spec);
    auto& other_loss = comparison.other_loss.emplace_back();
    // The training of an imported run is unknown: its defaults would be differences that no one chose.
    if (!comparison.runs.empty() && (is_imported(comparison.runs.front()) || is_imported(*run)))
      std::erase_if(differences, [](const SpecDifference& each) { return each.key != "run.name"; });
    else if (!comparison.runs.empty())
      other_loss = loss_difference(comparison.runs.front().spec, run->spec);
    if (steps != first_steps) differences.push_back({steps_set_key, first_steps, steps});
    comparison.runs.push_back(std::move(*run));
  }
  share_the_past(curves);
  comparison.clock = common_clock(curves);
  comparison.points = compared_points(curves, comparison.clock);
  for (std::size_t run = 0; run < curves.size(); ++run) {
    if (!curves[run].points.empty() && !knows_samples(curves[run])) comparison.without_samples.push_back(run);
    comparison.distances.push_back(
        run == 0 ? CurveDistance() : distance_of(shared_points(curves.front(), curves[run], comparison.clock)));
  }
  return comparison;
}

std::string to_json(const RunComparison& comparison) {
  Json json;
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    Json run;
    run["dir"] = comparison.runs[i].dir.string();
    run["summary"] = parse_json(to_json(comparison.runs[i]));
    run["problems"] = comparison.runs[i].problems;
    run["differences"] = Json::array();
    for (const auto& difference : comparison.differences[i])
      run["differences"].push_back({{"key", difference.key}, {"first", difference.left}, {"this", difference.right}});
    if (!comparison.other_loss[i].empty()) run["other_loss"] = comparison.other_loss[i];
    const CurveDistance& distance = comparison.distances[i];
    run["shared_points"] = distance.shared_points;
    run["first_divergence"] = to_json(distance.first_divergence, comparison);
    run["parting"] = to_json(distance.parting, comparison);
    run["noise"] = json_number(distance.noise);
    run["largest_relative_difference"] = json_number(distance.largest_relative_difference);
    json["runs"].push_back(std::move(run));
  }
  json["clock"] = to_name(comparison.clock);
  json["points"] = Json::array();
  for (const auto& point : comparison.points) json["points"].push_back(to_json(point, comparison.clock));
  // Over all runs: the earliest, and the largest.
  std::optional<SharedPoint> earliest;
  double largest = 0.0;
  for (const CurveDistance& distance : comparison.distances) {
    largest = std::max(largest, distance.largest_relative_difference);
    if (distance.first_divergence && (!earliest || distance.first_divergence->at < earliest->at))
      earliest = distance.first_divergence;
  }
  json["first_divergence"] = to_json(earliest, comparison);
  json["largest_relative_difference"] = json_number(largest);
  return json_text(json, 2) + "\n";
}

}  // namespace accrue
