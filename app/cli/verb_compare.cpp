// SPDX-License-Identifier: Apache-2.0
// compare: differences between runs, in their specs and in their losses at equal samples or updates.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/curve_parting.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// "after 32 samples", "at update 3"
std::string place_of(const SharedPoint& point, ComparisonClock clock) {
  return clock == ComparisonClock::samples ? "after " + counted(point.at, "sample")
                                           : fmt::format("at update {}", point.at);
}

const char* same_place(ComparisonClock clock) {
  return clock == ComparisonClock::samples ? "after the same number of samples" : "at the same update";
}

void print_clock(const RunComparison& comparison) {
  if (comparison.without_samples.empty()) return;
  const std::string runs = joined(comparison.without_samples, ", ", [](std::size_t run) { return run + 1; });
  const bool one = comparison.without_samples.size() == 1;
  put("\nCompared at equal updates: %s %s %s not say how many samples %s trained on.\n", one ? "run" : "runs",
      runs.c_str(), one ? "does" : "do", one ? "it" : "they");
}

void print_points(const RunComparison& comparison) {
  constexpr std::size_t rows = 12;
  if (comparison.points.empty()) {
    put("\nNo two runs reported %s.\n", same_place(comparison.clock));
    return;
  }
  put("\n%12s", comparison.clock == ComparisonClock::samples ? "samples" : "update");
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) put(" %22s", fmt::format("loss {}", i + 1).c_str());
  put("\n");
  for (const ComparedPoint& point : points_to_show(comparison.points, rows)) {
    put("%12lld", static_cast<long long>(point.at));
    for (const auto& loss : point.losses) put(" %22s", loss ? fmt::format("{}", *loss).c_str() : "-");
    put("\n");
  }
}

/// Whether they made different numbers of updates, or ended at different weights.
bool differs_elsewhere(const RunSummary& a, const RunSummary& b) {
  return a.updates != b.updates || a.weights_sha256 != b.weights_sha256;
}

/// Prints how each run ran and ended compared with the first.
void print_distances(const RunComparison& comparison) {
  const RunSummary& first = comparison.runs.front();
  for (std::size_t i = 1; i < comparison.runs.size(); ++i) {
    const RunSummary& run = comparison.runs[i];
    const CurveDistance& distance = comparison.distances[i];
    put("\n1 and %zu: ", i + 1);
    if (distance.shared_points == 0)
      put("no loss %s\n", same_place(comparison.clock));
    else if (const auto& point = distance.first_divergence)
      put(fmt::format("first divergence {}, loss {} and {}; largest relative difference {:.3g}\n",
                      place_of(*point, comparison.clock), point->first, point->second,
                      distance.largest_relative_difference));
    else
      put("the losses are equal in every bit%s\n", !differs_elsewhere(first, run) ? ""
                                                   : comparison.clock == ComparisonClock::samples
                                                       ? " at the sample counts that both reported"
                                                       : " at the updates that both reported");
    if (!comparison.other_loss[i].empty())
      put("their losses do not mean the same: %s differs\n", comparison.other_loss[i].c_str());
    if (const auto& parting = distance.parting)
      put(fmt::format("the curves part {}: {}\n", place_of(*parting, comparison.clock),
                      distance.noise > 0 ? fmt::format("the difference is more than its noise, {:.3g}", distance.noise)
                                         : "they are equal before, but for rounding"));
    else if (distance.too_few_points)
      put("too few points to judge the difference: %lld, and at least %zu are needed\n",
          static_cast<long long>(distance.shared_points), fewest_points);
    else if (distance.shared_points > 0 && distance.first_divergence)
      put("the difference is not more than noise\n");
    if (run.updates != first.updates)
      put("run %zu made %s, run 1 made %s\n", i + 1, counted(run.updates, "update").c_str(),
          counted(first.updates, "update").c_str());
    if (run.weights_sha256.empty() || first.weights_sha256.empty()) continue;
    put("the final weights of 1 and %zu %s\n", i + 1,
        run.weights_sha256 == first.weights_sha256 ? "are equal in every bit" : "differ");
  }
}

void print_text(const RunComparison& comparison) {
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    put("%zu  %s  (%s, %s)\n", i + 1, comparison.runs[i].name.c_str(), comparison.runs[i].state.c_str(),
        comparison.runs[i].dir.string().c_str());
  for (std::size_t i = 1; i < comparison.runs.size(); ++i) {
    put("\n1 -> %zu%s\n", i + 1, comparison.differences[i].empty() ? ": the specs are equal" : "");
    for (const auto& difference : comparison.differences[i])
      put("  %-32s %s -> %s\n", difference.key.c_str(),
          difference.left.empty() ? "(left out)" : difference.left.c_str(),
          difference.right.empty() ? "(left out)" : difference.right.c_str());
  }
  print_clock(comparison);
  print_points(comparison);
  print_distances(comparison);
}

}  // namespace

int compare_runs_of(const CompareOptions& options) {
  const auto comparison = compare_runs({options.dirs.begin(), options.dirs.end()});
  if (!comparison) return report(comparison.error());
  for (const RunSummary& run : comparison->runs) warn_of(run.problems, run.dir.string() + ": ");
  if (options.json)
    put_data(to_json(*comparison));
  else
    print_text(*comparison);
  return status_done;
}

}  // namespace accrue::cli
