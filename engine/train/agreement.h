// SPDX-License-Identifier: Apache-2.0
// The one small exchange that a window makes besides its gradients: counts, losses, whether anything is not finite, and
// what the ranks were told to do, so that all of them decide alike. Every rank gathers every rank's row and adds them
// in rank order, so the sums are equal to the last bit.
#pragma once

#include <array>
#include <cstdint>

#include "accrue/comm/mesh.h"
#include "accrue/train/rank_channel.h"
#include "train/loss_scaling.h"

namespace accrue {

/// The losses of a window's micro-steps, or what one part of each comes to.
struct LossTally {
  double numerator = 0.0;  ///< sum of weight * loss sum
  double mean_sum = 0.0;   ///< sum of the micro-steps' mean losses
  double last_mean = 0.0;
  LossTally& operator+=(const LossTally& other);
};

/// What one rank brings to the boundary of its window.
struct WindowTally {
  WindowCounts counts;
  std::int64_t micro_steps = 0;  ///< with a loss
  LossTally loss;
  std::int64_t non_finite_micro_step = 0;  ///< the first whose loss is not finite; 0 = none
  LossTally first;                         ///< of a model with two losses: the share of the first in `loss`
  LossTally second;                        ///< and of the second
  BoundaryRequests requests;
};

/// Its counts and losses as numbers, which an exchange and a checkpoint carry: counts stay exact up to 2^53. What the
/// rank was told to do is not among them.
using TallyRow = std::array<double, 13>;
TallyRow row_of(const WindowTally& tally);
WindowTally tally_of(const TallyRow& row);

/// The same over all ranks.
struct Agreement {
  WindowTally total;
  std::int64_t ranks_with_loss = 0;
  std::int64_t non_finite_rank = -1;  ///< of the world, the first whose loss is not finite
};

/// Counts and losses are those of the replicas, on the last pipeline stage; requests and whether anything is not
/// finite, of all ranks. Collective: the world.
Agreement agree(const Mesh& mesh, const WindowTally& tally);

/// This rank's replicas on the last stage, which has the losses.
RankList ranks_with_losses(const Mesh& mesh);

/// Element by element over all ranks, in rank order. Collective: the axis.
std::array<double, 3> sum_over_ranks(Communicator& axis, const std::array<double, 3>& values);

}  // namespace accrue
