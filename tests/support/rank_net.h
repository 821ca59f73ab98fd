// SPDX-License-Identifier: Apache-2.0
// The small net of a rank under DistributedDataParallel, over shared memory.
#pragma once

#include <cstdint>

#include "accrue/parallel/distributed_data_parallel.h"
#include "support/joined_rank.h"
#include "support/small_net.h"

namespace accrue::test {

struct RankNet {
  explicit RankNet(const RankContext& rank, DataParallelOptions options = {}, std::uint32_t seed = 3,
                   at::ScalarType dtype = at::kDouble)
      : joined(join_ranks(rank, BackendKind::shm)), net(seed, dtype), ddp(net, axis, options) {}

  JoinedRank joined;
  Communicator& axis = *joined.data;
  Net net;
  DistributedDataParallel ddp;
};

/// The largest difference of any element.
inline double apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

/// The launch that a rank's first argument names.
inline LaunchBuckets launch_of(const RankContext& rank) {
  return launch_named(rank.arguments.at(0));
}

}  // namespace accrue::test
