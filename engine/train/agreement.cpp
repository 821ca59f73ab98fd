// SPDX-License-Identifier: Apache-2.0
// Rows of doubles: counts stay exact up to 2^53, and NaN and infinity travel as they are.
#include "train/agreement.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

namespace accrue {
namespace {

template <std::size_t N>
std::vector<std::array<double, N>> gather_rows(Communicator& axis, const std::array<double, N>& row) {
  const auto columns = static_cast<std::int64_t>(N);
  at::Tensor mine = at::empty({columns}, at::kDouble);
  at::Tensor all = at::empty({axis.size(), columns}, at::kDouble);
  std::copy(row.begin(), row.end(), mine.mutable_data_ptr<double>());
  axis.all_gather(all, mine);
  std::vector<std::array<double, N>> rows(static_cast<std::size_t>(axis.size()));
  const double* at = all.const_data_ptr<double>();
  for (auto& each : rows) {
    std::copy(at, at + N, each.begin());
    at += N;
  }
  return rows;
}

}  // namespace

Agreement agree(Communicator& axis, const WindowTally& tally) {
  const std::array<double, 10> row{static_cast<double>(tally.counts.items),
                                   static_cast<double>(tally.counts.samples),
                                   static_cast<double>(tally.micro_steps),
                                   tally.numerator,
                                   tally.mean_sum,
                                   tally.last_mean,
                                   static_cast<double>(tally.non_finite_micro_step),
                                   tally.wishes.checkpoint ? 1.0 : 0.0,
                                   tally.wishes.stop ? 1.0 : 0.0,
                                   static_cast<double>(tally.wishes.steps)};
  Agreement agreed;
  WindowTally& total = agreed.total;
  const auto rows = gather_rows(axis, row);
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const auto& each = rows[rank];
    total.counts.items += static_cast<std::int64_t>(each[0]);
    total.counts.samples += static_cast<std::int64_t>(each[1]);
    total.micro_steps += static_cast<std::int64_t>(each[2]);
    total.numerator += each[3];
    total.mean_sum += each[4];
    total.last_mean += each[5];
    if (each[2] > 0) ++agreed.ranks_with_loss;
    if (each[6] > 0 && agreed.non_finite_rank < 0) {
      agreed.non_finite_rank = static_cast<std::int64_t>(rank);
      total.non_finite_micro_step = static_cast<std::int64_t>(each[6]);
    }
    total.wishes.checkpoint |= each[7] > 0;
    total.wishes.stop |= each[8] > 0;
    total.wishes.steps = std::max(total.wishes.steps, static_cast<std::int64_t>(each[9]));
  }
  return agreed;
}

std::array<double, 3> sum_over_ranks(Communicator& axis, const std::array<double, 3>& values) {
  std::array<double, 3> sums{};
  for (const auto& row : gather_rows(axis, values))
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
  return sums;
}

}  // namespace accrue
