// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/plan/pair_share.h"

#include <algorithm>

#include "accrue/run/cost/rank_grid.h"

namespace accrue {

std::optional<std::int64_t> pair_threads(const RunSpec& first, const RunSpec& second, const HostFacts& host) {
  std::int64_t ranks = 0;
  std::int64_t devices = 0;
  for (const RunSpec* spec : {&first, &second}) {
    const std::int64_t world = make_grid(*spec).world();
    ranks += world;
    if (spec->launch.device == DeviceKind::cuda) devices += world;
  }
  if (ranks < 1 || ranks > host.cores || devices > static_cast<std::int64_t>(host.cuda_devices.size()))
    return std::nullopt;
  std::int64_t threads = host.cores / ranks;
  for (const RunSpec* spec : {&first, &second})
    threads = std::min(threads, spec->launch.threads_per_rank.value_or(threads));
  return threads;
}

RunPlan with_threads(RunPlan plan, std::int64_t threads) {
  plan.threads_per_rank = threads;
  if (plan.spec.launch.threads_per_rank) plan.spec.launch.threads_per_rank = threads;
  return plan;
}

}  // namespace accrue
