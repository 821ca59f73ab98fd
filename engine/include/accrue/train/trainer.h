// SPDX-License-Identifier: Apache-2.0
// train_run: the passes of one rank, from the plan to the final weights. AccumulationWindow answers all questions about
// windows. Thread: the calling one becomes the training thread.
#pragma once

#include <string>

#include "accrue/comm/mesh.h"
#include "accrue/run/base/result.h"
#include "accrue/run/preflight/run_order.h"
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

/// local_rank: index of this rank's device on its host; registry: the names for [megatron]. Collective: the world.
/// Errors: device, data, numerics (stop rule), disk (final weights), protocol (checkpoint). A failed collective throws
/// CommError; a name that the registry lacks, std::invalid_argument.
Result<TrainOutcome> train_run(const RunOrder& order, const Mesh& mesh, std::int64_t local_rank, RankChannel& channel,
                               const megatron::Registry& registry);
/// Does the same without a registry.
Result<TrainOutcome> train_run(const RunOrder& order, const Mesh& mesh, std::int64_t local_rank, RankChannel& channel);

}  // namespace accrue
