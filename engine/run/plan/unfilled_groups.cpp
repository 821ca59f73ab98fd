// SPDX-License-Identifier: Apache-2.0
#include "unfilled_groups.h"

#include <algorithm>
#include <set>
#include <string>

#include "accrue/run/window/pipeline_schedule.h"

namespace accrue {
namespace {

/// Size of the window after `updates` updates; 0 if the run is over.
std::int64_t size_after(const WindowShape& shape, std::int64_t updates) {
  AccumulationWindow window(shape);
  window.pass_updates(updates);
  const auto next = window.peek();
  return next ? next->window_size : 0;
}

}  // namespace

std::vector<std::int64_t> unfilled_groups(const RunPlan& plan) {
  const ParallelSpec& parallel = plan.spec.parallel;
  if (parallel.virtual_pipeline == 1 || parallel.pipeline_order == PipelineOrder::all_forward) return {};
  std::set<std::int64_t> sizes;
  if (has_length_schedule(plan.knobs.group_length))
    for (const LengthChange& change : plan.window.length_schedule) sizes.insert(change.steps);
  sizes.insert(size_after(plan.window, plan.full_windows_per_epoch));
  if (plan.totals.updates > 0) sizes.insert(size_after(plan.window, plan.totals.updates - 1));
  std::vector<std::int64_t> unfilled;
  for (const std::int64_t size : sizes)
    if (size > 0 && pipeline_shape(parallel, size).schedule != PipelineSchedule::interleaved) unfilled.push_back(size);
  return unfilled;
}

std::string unfilled_groups_text(const RunPlan& plan) {
  const auto sizes = unfilled_groups(plan);
  if (sizes.empty()) return {};
  std::string text = "windows of ";
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == sizes.size() ? " and " : ", ") + std::to_string(sizes[i]);
  return text + (sizes.back() == 1 ? " micro-step" : " micro-steps") +
         " run all forward first: they do not fill the groups of the interleaved schedule";
}

}  // namespace accrue
