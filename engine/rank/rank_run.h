// SPDX-License-Identifier: Apache-2.0
// A rank process, from its command line to a trained model: find this rank and its plan, meet the other ranks, train,
// report the end.
#pragma once

#include <memory>
#include <optional>

#include "accrue/comm/mesh.h"
#include "accrue/run/base/owned_fd.h"
#include "accrue/run/host/run_keeper.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/train/trainer.h"
#include "rank/arguments.h"
#include "rank/process_channel.h"

namespace accrue {

class RankRun {
 public:
  explicit RankRun(const RankArguments& arguments) : arguments_(arguments) {}

  /// Does everything up to the final weights. Errors: any class; exceptions of a collective or an allocation propagate.
  Result<TrainOutcome> run();
  /// Reports the result to the supervisor and on standard error, closes the channel and returns the exit status.
  int end(const Result<TrainOutcome>& result);

 private:
  Result<void> prepare_supervised();
  Result<void> prepare_foreign();
  Result<void> make_shared_order();
  Result<void> keep_record();
  Result<void> meet(const RunSpec& spec, BackendKind backend, const std::string& run_id);
  void open_channel(int fd);
  void announce();

  const RankArguments arguments_;
  RankIdentity identity_;
  RunOrder order_;
  std::optional<ClaimedFolder> folder_;  ///< rank 0 without a supervisor, until the keeper takes it
  std::unique_ptr<Rendezvous> rendezvous_;
  Mesh mesh_;                          ///< declared after the rendezvous, so it is destroyed first
  std::unique_ptr<RunKeeper> keeper_;  ///< rank 0 without a supervisor
  OwnedFd channel_fd_;
  std::unique_ptr<ProcessChannel> channel_;
};

}  // namespace accrue
