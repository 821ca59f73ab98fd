// SPDX-License-Identifier: Apache-2.0
// RunKeeper: the supervisor's part in a run that another launcher started (torchrun, srun, mpirun). One writer keeps a
// run's record: whoever supervises the ranks, else rank 0, in whose process a keeper lives. It writes the same record,
// and it serves the same control socket, so the run is shown, followed, held and stopped like any other. What it cannot
// do is start ranks again: their launcher may.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/run_event.h"
#include "accrue/run/run_order.h"
#include "accrue/run/run_store.h"

namespace accrue {

class RunKeeper {
 public:
  /// Begins the record, or goes on with it where `continues`. `channels`: one connected stream socket a rank, in their
  /// order; the keeper owns them. `on_killed` is called on the keeper's thread with the run's end once the record
  /// of a run is complete whose ranks were told to end at once: this process is one of them. `own_loop`: the ranks are
  /// a program's with a loop of its own, which goes on after so many updates; of the order it has what a list of runs
  /// shows, and the folder gets no plan.
  RunKeeper(RunOrder order, RunWriter writer, bool continues, std::vector<int> channels,
            std::function<void(const RunFinished&)> on_killed, std::optional<std::int64_t> own_loop = {});
  /// Waits until all channels have ended and the record is complete.
  ~RunKeeper();
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Ends the record of a program whose ranks are all gone, where they did not: of a program that knows nothing of
/// Accrue, or one that was killed. `failed`: the ranks' own ends, as far as they failed. Errors (disk): it cannot be
/// written.
Result<void> end_loop_record(const std::filesystem::path& dir, const RunFinished& end,
                             const std::map<std::int64_t, RankFailed>& failed);

}  // namespace accrue
