// SPDX-License-Identifier: Apache-2.0
// RunKeeper: the supervisor's part in a run that another launcher started (torchrun, srun, mpirun). One writer keeps a
// run's record: whoever supervises the ranks, else rank 0, in whose process a keeper lives. It writes the same record,
// and it serves the same control socket, so the run is shown, followed, held and stopped like any other. What it cannot
// do is start ranks again: their launcher may.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "accrue/run/run_event.h"
#include "accrue/run/run_plan.h"
#include "accrue/run/run_store.h"

namespace accrue {

class RunKeeper {
 public:
  /// Begins the record, or goes on with it where `continues`. `channels`: one connected stream socket a rank, in their
  /// order; the keeper owns them. `on_killed` is called on the keeper's thread with the run's end once the record
  /// of a run is complete whose ranks were told to end at once: this process is one of them.
  RunKeeper(RunOrder order, RunWriter writer, bool continues, std::vector<int> channels,
            std::function<void(const RunFinished&)> on_killed);
  /// Waits until all channels have ended and the record is complete.
  ~RunKeeper();
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace accrue
