// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/host/run_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "accrue/run/base/counted.h"
#include "accrue/run/base/number_text.h"
#include "memory_estimate.h"

namespace accrue {
namespace {

struct NeededFile {
  std::int64_t bytes = 0;
  const char* what = "";
};

/// Returns the largest file, if known before the run.
NeededFile largest_file(const RunPlan& plan) {
  const std::int64_t world = plan.grid.world();
  const bool shares = plan.backend == BackendKind::shm && world > 1;
  const std::int64_t gradients = plan.grid.data > 1 ? plan.grid.data * plan.memory.gradients : 0;
  const NeededFile files[] = {
      {shares ? std::max(needed_file_bytes(world), gradients) : 0, "the memory that the ranks share"},
      {plan.memory.parameters + plan.memory.optimizer, "a rank's part of a checkpoint"},
      {plan.parameter_count * dtype_bytes(plan.spec.model.dtype), "the final model"}};
  return *std::ranges::max_element(files, {}, &NeededFile::bytes);
}

}  // namespace

std::int64_t needed_open_files(std::int64_t ranks) {
  constexpr std::int64_t of_a_process = 32;  // of this process or a rank: streams, record, locks, sockets, checkpoints
  constexpr std::int64_t of_each_rank = 4;   // channel, output, process, and a peer's connection in rank 0
  return of_a_process + of_each_rank * ranks;
}

std::int64_t needed_file_bytes(std::int64_t ranks) {
  constexpr std::int64_t of_each_rank = 3 << 20;  // two halves of staging and its messages
  return of_each_rank * ranks;
}

Result<void> check_limits(const RunPlan& plan) {
  const std::int64_t ranks = plan.grid.world();
  rlimit limit{};
  const auto files = static_cast<rlim_t>(needed_open_files(ranks));
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files)
    return fail(
        ErrorCode::device,
        fmt::format("{} may need {} open files, and the limit is {}", counted(ranks, "rank"), files, limit.rlim_cur),
        {}, fmt::format("Raise the limit: ulimit -n {}", files));
  const NeededFile file = largest_file(plan);
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(file.bytes))
    return fail(ErrorCode::device,
                fmt::format("{} takes a file of {}, and the limit is {} (ulimit -f)", file.what,
                            format_bytes(file.bytes), format_bytes(limit.rlim_cur)),
                {}, "Raise the limit: ulimit -f unlimited");
  return {};
}

}  // namespace accrue
