// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/pipeline_threads.h"

#include <algorithm>

#include "accrue/run/window/pipeline_timeline.h"

namespace accrue {
namespace {

/// Threads of each of a stage's ranks while `computing` of p stages compute: an even share of all stages' threads, at
/// most cores / (computing x ranks per stage), and never fewer than its own.
std::int64_t threads_beside(std::int64_t computing, std::int64_t stages, const StageHost& host) {
  const std::int64_t shared = host.threads * stages / computing;
  return std::max(host.threads, std::min(shared, host.cores / (computing * host.ranks)));
}

}  // namespace

Result<std::vector<LentThreads>> pipeline_threads(const PipelineShape& shape, std::int64_t stage,
                                                  const StageHost& host) {
  // A chunk's forward takes 1 and its backward 2. Integers: sums of fractions would round, and adjacent blocks would
  // seem to overlap.
  const auto forward = static_cast<double>(shape.chunks);
  const auto timeline = pipeline_timeline(shape, {forward, 2.0 * forward});
  if (!timeline) return tl::unexpected(timeline.error());
  if (host.threads > 1) return std::vector<LentThreads>{};
  const auto own = static_cast<std::size_t>(stage);
  const auto at_work = stages_at_work(*timeline)[own];
  std::vector<LentThreads> lent;
  for (std::size_t i = 0; i < at_work.size(); ++i) {
    const PipelineBlock& block = timeline->lanes[own][i];
    const std::int64_t threads = threads_beside(at_work[i], shape.stages, host);
    if (threads > host.threads) lent.push_back({block.action, block.micro_step, block.chunk, threads});
  }
  return lent;
}

}  // namespace accrue
