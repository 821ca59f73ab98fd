// SPDX-License-Identifier: Apache-2.0
// RunKeeper: the supervisor's part in a run that another launcher started (torchrun, srun, mpirun). A run's record has
// one writer: the supervisor of the ranks, else a keeper in the process of rank 0. The keeper writes the same record
// and serves the same control socket, so the run is shown, followed, held and stopped like any other. Only its launcher
// can start ranks again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/base/owned_fd.h"
#include "accrue/run/events/run_event.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/run/record/run_store.h"

namespace accrue {

class RunKeeper {
 public:
  /// Begins the record, or continues it if `continues`. `channels`: one connected stream socket per rank, in order.
  /// `on_killed`: called on the keeper's thread with the run's end, once the record of a killed run
  /// is complete; this process is one of its ranks. `own_loop`: the ranks belong to a program with its own loop, which
  /// continues after so many updates; the order then has only what a list of runs shows, and the folder gets no plan.
  RunKeeper(RunOrder order, RunWriter writer, bool continues, std::vector<OwnedFd> channels,
            std::function<void(const RunFinished&)> on_killed, std::optional<std::int64_t> own_loop = {});
  /// Waits until all channels are closed and the record is complete.
  ~RunKeeper();
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Ends the record of a program whose ranks are gone without ending it: a program that knows nothing of Accrue, or one
/// that was killed. `failed`: the ranks that failed, and how. Errors (disk): it cannot be written.
Result<void> end_loop_record(const std::filesystem::path& dir, const RunFinished& end,
                             const std::map<std::int64_t, RankFailed>& failed);

}  // namespace accrue
