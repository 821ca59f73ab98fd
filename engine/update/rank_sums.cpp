// SPDX-License-Identifier: Apache-2.0
#include "update/rank_sums.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "comm/gathered.h"

namespace accrue {

at::Tensor rows_of_ranks(Communicator& axis, std::span<const double> row) {
  at::Tensor mine = at::empty({std::ssize(row)}, at::kDouble);
  std::ranges::copy(row, mine.mutable_data_ptr<double>());
  return gathered(axis, mine);
}

std::array<double, 3> sum_over_ranks(Communicator& axis, const std::array<double, 3>& values) {
  std::array<double, 3> sums{};
  const at::Tensor rows = rows_of_ranks(axis, values);
  const double* value = rows.const_data_ptr<double>();
  for (std::int64_t rank = 0; rank < axis.size(); ++rank)
    for (double& sum : sums) sum += *value++;
  return sums;
}

}  // namespace accrue
