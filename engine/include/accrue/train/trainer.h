// SPDX-License-Identifier: Apache-2.0
// train_run: the pass list of one rank, from the plan to the final weights. Everything a window needs is asked of
// AccumulationWindow. Thread: the one that calls becomes the training thread.
#pragma once

#include <string>

#include "accrue/comm/mesh.h"
#include "accrue/run/result.h"
#include "accrue/run/run_order.h"
#include "accrue/train/rank_channel.h"

namespace accrue {

namespace megatron {
struct Registry;
}

struct TrainOutcome {
  std::string outcome;  ///< finished or stopped
  std::int64_t updates = 0;
  double loss = 0.0;
  std::string weights_sha256;
};

/// local_rank: which of its host's devices is this rank's; registry: what [megatron] can name. Collective: the world.
/// Errors: device, data, numerics (stop rule), disk (final weights), protocol (checkpoint). A collective that fails
/// throws CommError; a name that the registry does not have, std::invalid_argument.
Result<TrainOutcome> train_run(const RunOrder& order, const Mesh& mesh, std::int64_t local_rank, RankChannel& channel,
                               const megatron::Registry& registry);
/// The same where nothing is registered.
Result<TrainOutcome> train_run(const RunOrder& order, const Mesh& mesh, std::int64_t local_rank, RankChannel& channel);

}  // namespace accrue
