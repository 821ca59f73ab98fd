// SPDX-License-Identifier: Apache-2.0
// compare: what differs between runs, in their specs and in their losses at equal samples.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "accrue/run/compare.h"
#include "accrue/run/counted.h"
#include "printable.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

void print_point(const ComparedPoint& point) {
  std::printf("%12lld", static_cast<long long>(point.samples));
  for (const auto& loss : point.losses) std::printf(" %22s", loss ? fmt::format("{}", *loss).c_str() : "-");
  std::printf("\n");
}

void print_points(const RunComparison& comparison) {
  constexpr std::size_t rows = 12;
  const auto& points = comparison.points;
  if (points.empty()) {
    std::printf("\nNo two runs reported after the same number of samples.\n");
    return;
  }
  std::printf("\n%12s", "samples");
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) std::printf(" %22s", fmt::format("loss {}", i + 1).c_str());
  std::printf("\n");
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
    std::printf("\n1 and %zu: ", i + 1);
    if (distance.shared_points == 0)
      std::printf("no loss after the same number of samples\n");
    else if (const auto& point = distance.first_divergence)
      std::fputs(fmt::format("first divergence after {}, loss {} and {}; largest relative difference {:.3g}\n",
                             counted(point->samples, "sample"), *point->losses.front(), *point->losses[i],
                             distance.largest_relative_difference)
                     .c_str(),
                 stdout);
    else
      std::printf("the losses are equal in every bit%s\n",
                  differs_elsewhere(first, run) ? " at the sample counts that both reported" : "");
    if (const auto& parting = distance.parting)
      std::fputs(
          fmt::format("the curves part after {}: {}\n", counted(parting->samples, "sample"),
                      distance.noise > 0 ? fmt::format("the difference is more than its noise, {:.3g}", distance.noise)
                                         : "they are equal before, but for rounding")
              .c_str(),
          stdout);
    else if (distance.too_few_points)
      std::printf("too few points to judge the difference: %lld, and at least %zu are needed\n",
                  static_cast<long long>(distance.shared_points), fewest_points);
    else if (distance.shared_points > 0 && distance.first_divergence)
      std::printf("the difference is not more than noise\n");
    if (run.updates != first.updates)
      std::printf("run %zu made %s, run 1 made %s\n", i + 1, counted(run.updates, "update").c_str(),
                  counted(first.updates, "update").c_str());
    if (run.weights_sha256.empty() || first.weights_sha256.empty()) continue;
    std::printf("the final weights of 1 and %zu %s\n", i + 1,
                run.weights_sha256 == first.weights_sha256 ? "are equal in every bit" : "differ");
  }
}

void print_text(const RunComparison& comparison) {
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    std::printf("%zu  %s  (%s, %s)\n", i + 1, printable(comparison.runs[i].name).c_str(),
                printable(comparison.runs[i].state).c_str(), printable(comparison.runs[i].dir.string()).c_str());
  for (std::size_t i = 1; i < comparison.runs.size(); ++i) {
    std::printf("\n1 -> %zu%s\n", i + 1, comparison.differences[i].empty() ? ": the specs are equal" : "");
    for (const auto& difference : comparison.differences[i])
      std::printf("  %-32s %s -> %s\n", difference.key.c_str(),
                  difference.left.empty() ? "(left out)" : printable(difference.left).c_str(),
                  difference.right.empty() ? "(left out)" : printable(difference.right).c_str());
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
    std::fputs(to_json(*comparison).c_str(), stdout);
  else
    print_text(*comparison);
  return status_done;
}

}  // namespace accrue::cli
