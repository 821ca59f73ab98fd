// SPDX-License-Identifier: Apache-2.0
// compare: what differs between runs, in their specs and in their losses at equal samples.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "accrue/run/compare.h"
#include "accrue/run/counted.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

void print_point(const ComparedPoint& point) {
  put("%12lld", static_cast<long long>(point.samples));
  for (const auto& loss : point.losses) put(" %22s", loss ? fmt::format("{}", *loss).c_str() : "-");
  put("\n");
}

void print_points(const RunComparison& comparison) {
  constexpr std::size_t rows = 12;
  const auto& points = comparison.points;
  if (points.empty()) {
    put("\nNo two runs reported after the same number of samples.\n");
    return;
  }
  put("\n%12s", "samples");
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) put(" %22s", fmt::format("loss {}", i + 1).c_str());
  put("\n");
  const std::size_t shown = std::min(rows, points.size());
  for (std::size_t row = 0; row < shown; ++row)
    print_point(points[shown == 1 ? 0 : row * (points.size() - 1) / (shown - 1)]);
}

/// They made different numbers of updates, or ended at different weights.
bool differs_elsewhere(const RunSummary& a, const RunSummary& b) {
  return a.updates != b.updates || a.weights_sha256 != b.weights_sha256;
}

/// How each run ran and ended beside the first.
void print_distances(const RunComparison& comparison) {
  const RunSummary& first = comparison.runs.front();
  for (std::size_t i = 1; i < comparison.runs.size(); ++i) {
    const RunSummary& run = comparison.runs[i];
    const RunDistance& distance = comparison.distances[i];
    put("\n1 and %zu: ", i + 1);
    if (distance.shared_points == 0)
      put("no loss after the same number of samples\n");
    else if (const auto& point = distance.first_divergence)
      put(fmt::format("first divergence after {}, loss {} and {}; largest relative difference {:.3g}\n",
                      counted(point->samples, "sample"), *point->losses.front(), *point->losses[i],
                      distance.largest_relative_difference));
    else
      put("the losses are equal in every bit%s\n",
          differs_elsewhere(first, run) ? " at the sample counts that both reported" : "");
    if (const auto& parting = distance.parting)
      put(fmt::format("the curves part after {}: {}\n", counted(parting->samples, "sample"),
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
