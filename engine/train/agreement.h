// SPDX-License-Identifier: Apache-2.0
// The single small exchange of a window besides its gradients: counts, losses, non-finite values and commands, by which
// all ranks decide alike. Every rank gathers every rank's row and adds them in rank order, so the sums are equal to the
// last bit.
#pragma once

#include <array>
#include <cstdint>

#include "accrue/comm/mesh.h"
#include "accrue/train/rank_channel.h"
#include "train/loss_scaling.h"
#include "update/rank_sums.h"

namespace accrue {

/// Losses of a window's micro-steps, or of one part of each.
struct LossTally {
  double numerator = 0.0;  ///< sum of weight * loss sum
  double mean_sum = 0.0;   ///< sum of the micro-steps' mean losses
  double last_mean = 0.0;
  LossTally& operator+=(const LossTally& other);
};

/// Contribution of one rank to the boundary of its window.
struct WindowTally {
  WindowCounts counts;
  std::int64_t micro_steps = 0;  ///< with a loss
  LossTally loss;
  std::int64_t non_finite_micro_step = 0;  ///< the first with a non-finite loss; 0: none
  LossTally first;                         ///< for a model with two losses: the share of the first in `loss`
  LossTally second;                        ///< the same for the second
  BoundaryRequests requests;
};

/// Counts and losses as numbers, for an exchange or a checkpoint; counts are exact up to 2^53. Commands are not
/// included.
using TallyRow = std::array<double, 13>;
TallyRow row_of(const WindowTally& tally);
WindowTally tally_of(const TallyRow& row);

/// Sums of all ranks' tallies.
struct Agreement {
  WindowTally total;
  std::int64_t ranks_with_loss = 0;
  std::int64_t non_finite_rank = -1;  ///< of the world: the first with a non-finite loss; -1: none
};

/// Counts and losses are those of the replicas, on the last pipeline stage; requests and the check for non-finite
/// values cover all ranks. Collective: the world.
Agreement agree(const Mesh& mesh, const WindowTally& tally);

/// Replicas of this rank on the last stage, which has the losses.
RankList ranks_with_losses(const Mesh& mesh);

}  // namespace accrue
