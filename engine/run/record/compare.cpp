// SPDX-License-Identifier: Apache-2.0
// Runs with different windows report at different updates; what they share is the number of samples they have seen.
// Each run is compared with the first where that number is the same, so nothing is interpolated and a difference is
// real.
#include "accrue/run/compare.h"

#include "accrue/run/tensorboard_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "accrue/run/event_reader.h"
#include "accrue/run/steps_record.h"
#include "json_number.h"
#include "json_text.h"

namespace accrue {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

Json to_json(const ComparedPoint& point) {
  Json json;
  json["samples"] = point.samples;
  json["losses"] = Json::array();
  for (const auto& loss : point.losses) json["losses"].push_back(loss ? json_number(*loss) : Json(nullptr));
  return json;
}

RunDistance distance_of(const std::vector<ComparedPoint>& points, std::size_t run) {
  RunDistance distance;
  std::vector<double> references, losses;
  std::vector<const ComparedPoint*> shared;
  for (const auto& point : points) {
    if (!point.losses.front() || !point.losses[run]) continue;
    ++distance.shared_points;
    shared.push_back(&point);
    references.push_back(*point.losses.front());
    losses.push_back(*point.losses[run]);
    const double reference = *point.losses.front();
    const double loss = *point.losses[run];
    if (!distance.first_divergence && !same_bits(loss, reference)) distance.first_divergence = point;
    const double scale = std::max(std::abs(reference), std::abs(loss));
    if (std::isfinite(scale) && scale > 0)
      distance.largest_relative_difference =
          std::max(distance.largest_relative_difference, std::abs(loss - reference) / scale);
  }
  if (const auto parting = curve_parting(references, losses)) {
    distance.parting = *shared[parting->index];
    distance.noise = parting->noise;
  }
  distance.too_few_points = too_few_to_judge(references, losses);
  return distance;
}

std::vector<LossPoint> curve_of(const RunCourse& course) {
  std::vector<LossPoint> curve;
  curve.reserve(course.updates.size());
  for (const auto& [number, update] : course.updates) curve.push_back({number, update.samples, update.loss});
  return curve;
}

/// "2 after update 12, 8 after update 20"
std::string steps_text(const std::vector<LengthChange>& steps_set) {
  std::string text;
  for (const LengthChange& each : steps_set)
    text += (text.empty() ? "" : ", ") + std::to_string(each.steps) + " after update " + std::to_string(each.from);
  return text.empty() ? "never" : text;
}

/// Before it branched, a run was the one that it branched from: it has that run's losses up to its own first.
void share_the_past(const std::vector<RunSummary>& runs,
                    std::map<std::int64_t, std::vector<std::optional<double>>>& all) {
  for (std::size_t branch = 0; branch < runs.size(); ++branch) {
    const auto parent = std::ranges::find(runs, runs[branch].branched_from, &RunSummary::run_id);
    if (runs[branch].branched_from.empty() || parent == runs.end()) continue;
    const auto from = static_cast<std::size_t>(parent - runs.begin());
    for (auto& [samples, losses] : all) {
      if (losses[branch]) break;
      losses[branch] = losses[from];
    }
  }
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
  std::map<std::int64_t, std::vector<std::optional<double>>> by_samples;
  std::string first_steps;
  for (const auto& dir : dirs) {
    auto run = read_run(dir);
    if (!run) return tl::unexpected(run.error());
    auto course = read_course(run->dir);
    if (!course) return tl::unexpected(course.error());
    for (const LossPoint& point : curve_of(*course)) {
      auto& losses = by_samples[point.samples];
      losses.resize(dirs.size());
      losses[comparison.runs.size()] = point.loss;
    }
    run->problems =
        record_problems(*run, course->problems, course->updates.empty() ? 0 : course->updates.rbegin()->first);
    const std::string steps = steps_text(course->steps_set);
    if (comparison.runs.empty()) first_steps = steps;
    auto& differences = comparison.differences.emplace_back();
    if (!comparison.runs.empty()) differences = diff_specs(comparison.runs.front().spec, run->spec);
    // How an imported run was trained is not known: its defaults would be differences that nobody chose.
    if (!comparison.runs.empty() && (is_imported(comparison.runs.front()) || is_imported(*run)))
      std::erase_if(differences, [](const SpecDifference& each) { return each.key != "run.name"; });
    if (steps != first_steps) differences.push_back({steps_set_key, first_steps, steps});
    comparison.runs.push_back(std::move(*run));
  }
  share_the_past(comparison.runs, by_samples);
  for (auto& [samples, losses] : by_samples)
    if (std::ranges::count(losses, true, &std::optional<double>::has_value) > 1)
      comparison.points.push_back({samples, std::move(losses)});
  comparison.distances.emplace_back();
  for (std::size_t run = 1; run < dirs.size(); ++run)
    comparison.distances.push_back(distance_of(comparison.points, run));
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
    const RunDistance& distance = comparison.distances[i];
    run["shared_points"] = distance.shared_points;
    run["first_divergence"] = distance.first_divergence ? to_json(*distance.first_divergence) : Json(nullptr);
    run["parting"] = distance.parting ? to_json(*distance.parting) : Json(nullptr);
    run["noise"] = json_number(distance.noise);
    run["largest_relative_difference"] = json_number(distance.largest_relative_difference);
    json["runs"].push_back(std::move(run));
  }
  json["points"] = Json::array();
  for (const auto& point : comparison.points) json["points"].push_back(to_json(point));
  // Over all runs: the earliest, and the largest.
  json["first_divergence"] = nullptr;
  double largest = 0.0;
  for (const RunDistance& distance : comparison.distances) {
    largest = std::max(largest, distance.largest_relative_difference);
    Json& earliest = json["first_divergence"];
    if (distance.first_divergence && (earliest.is_null() || distance.first_divergence->samples < earliest["samples"]))
      earliest = to_json(*distance.first_divergence);
  }
  json["largest_relative_difference"] = json_number(largest);
  return json_text(json, 2) + "\n";
}

}  // namespace accrue
