// SPDX-License-Identifier: Apache-2.0
#include "train/agreement.h"

#include <algorithm>
#include <tuple>

namespace accrue {

LossTally& LossTally::operator+=(const LossTally& other) {
  numerator += other.numerator;
  mean_sum += other.mean_sum;
  last_mean += other.last_mean;
  return *this;
}

TallyRow row_of(const WindowTally& tally) {
  // Checkpoints contain this order (checkpointing_state.cpp).
  return {static_cast<double>(tally.counts.items),
          static_cast<double>(tally.counts.samples),
          static_cast<double>(tally.micro_steps),
          tally.loss.numerator,
          tally.loss.mean_sum,
          tally.loss.last_mean,
          static_cast<double>(tally.non_finite_micro_step),
          tally.first.numerator,
          tally.first.mean_sum,
          tally.first.last_mean,
          tally.second.numerator,
          tally.second.mean_sum,
          tally.second.last_mean};
}

WindowTally tally_of(const TallyRow& row) {
  const auto whole = [&row](std::size_t i) { return static_cast<std::int64_t>(row[i]); };
  return {.counts = {whole(0), whole(1)},
          .micro_steps = whole(2),
          .loss = {row[3], row[4], row[5]},
          .non_finite_micro_step = whole(6),
          .first = {row[7], row[8], row[9]},
          .second = {row[10], row[11], row[12]},
          .requests = {}};
}

/// Ranks whose losses count: this rank's replicas, on the stage that has the losses.
RankList ranks_with_losses(const Mesh& mesh) {
  GridCoordinate at = mesh.at();
  at.pipeline = mesh.grid().pipeline - 1;
  return mesh.grid().group(Axis::data, mesh.grid().rank(at));
}

Agreement agree(const Mesh& mesh, const WindowTally& tally) {
  const TallyRow mine = row_of(tally);
  // One exchange of [16] numbers a rank, in float64: counts are exact, and NaN reaches every rank.
  std::array<double, std::tuple_size_v<TallyRow> + 3> sent{};
  std::ranges::copy(mine, sent.begin());
  double* const requests = sent.data() + mine.size();
  requests[0] = tally.requests.checkpoint ? 1.0 : 0.0;
  requests[1] = tally.requests.stop ? 1.0 : 0.0;
  requests[2] = static_cast<double>(tally.requests.steps);

  Agreement agreed;
  WindowTally& total = agreed.total;
  const at::Tensor rows = rows_of_ranks(mesh.world(), sent);
  // The tensor ranks of a replica hold equal losses. Only one of them counts: the one with this rank's
  // coordinate on the tensor axis.
  const RankList replicas = ranks_with_losses(mesh);
  for (std::int64_t rank = 0; rank < mesh.world().size(); ++rank) {
    const double* const received = rows.const_data_ptr<double>() + rank * std::ssize(sent);
    TallyRow row;
    std::copy_n(received, row.size(), row.begin());
    const WindowTally each = tally_of(row);
    if (each.non_finite_micro_step > 0 && agreed.non_finite_rank < 0) {
      agreed.non_finite_rank = rank;
      total.non_finite_micro_step = each.non_finite_micro_step;
    }
    const double* const requested = received + row.size();
    total.requests.checkpoint |= requested[0] > 0;
    total.requests.stop |= requested[1] > 0;
    total.requests.steps = std::max(total.requests.steps, static_cast<std::int64_t>(requested[2]));
    // Losses are counted once per replica, on its last stage.
    if (!std::ranges::binary_search(replicas, rank)) continue;
    total.counts.items += each.counts.items;
    total.counts.samples += each.counts.samples;
    total.micro_steps += each.micro_steps;
    total.loss += each.loss;
    total.first += each.first;
    total.second += each.second;
    if (each.micro_steps > 0) ++agreed.ranks_with_loss;
  }
  return agreed;
}

}  // namespace accrue
