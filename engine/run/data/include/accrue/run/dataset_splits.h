// SPDX-License-Identifier: Apache-2.0
// How one data set is divided into training, validation and test: a list of three proportions, "969,30,1".
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "accrue/run/indexed_dataset.h"

namespace accrue {

enum class DatasetSplit { train, valid, test };
inline constexpr DatasetSplit dataset_splits[] = {DatasetSplit::train, DatasetSplit::valid, DatasetSplit::test};
std::string_view to_string(DatasetSplit split);

/// From where to where of [0, 1] a split goes.
struct SplitBounds {
  double begin = 0;
  double end = 0;
};
/// One for each split; none for a split that gets nothing.
using SplitMatrix = std::array<std::optional<SplitBounds>, 3>;

/// One to three proportions, of any sum, separated by any characters that are not part of a number; those left out are
/// 0. Errors: config.
Result<SplitMatrix> parse_split(std::string_view text);
/// Whole elements of so many: both bounds rounded to the nearest, halves to the even number.
IndexRange elements_of(const SplitBounds& bounds, std::int64_t elements);

}  // namespace accrue
