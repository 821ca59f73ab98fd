// SPDX-License-Identifier: Apache-2.0
// The losses that ranks of a test trained with, and how far they are from others.
#pragma once

#include <QtGlobal>
#include <algorithm>
#include <cmath>
#include <vector>

#include "support/training_body.h"

namespace accrue::test {

/// The losses of all updates, as the first rank tells them. A rank that did not finish is named.
inline std::vector<double> losses_of(const std::vector<TrainedRank>& ranks) {
  std::vector<double> losses;
  for (const TrainedRank& rank : ranks)
    if (rank.outcome != "finished") qWarning("%s", rank.text().c_str());
  for (const Update& update : ranks[0].all<Update>()) losses.push_back(update.loss);
  return losses;
}

/// Relative; infinite if the numbers differ. `from`: their first place in `expected`.
inline double largest_difference(const std::vector<double>& found, const std::vector<double>& expected,
                                 std::size_t from = 0) {
  double most = found.size() + from == expected.size() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < found.size() && most < INFINITY; ++i)
    most = std::max(most, std::abs(found[i] / expected[i + from] - 1.0));
  return most;
}

}  // namespace accrue::test
