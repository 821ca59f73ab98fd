// SPDX-License-Identifier: Apache-2.0
// Division of one data set into training, validation and test, by a list of three proportions such as "969,30,1".
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "accrue/run/data/indexed_dataset.h"

namespace accrue {

enum class DatasetSplit { train, valid, test };
inline constexpr DatasetSplit dataset_splits[] = {DatasetSplit::train, DatasetSplit::valid, DatasetSplit::test};
std::string_view to_string(DatasetSplit split);

/// Range of a split within [0, 1].
struct SplitBounds {
  double begin = 0;
  double end = 0;
};
/// One entry per split; none for an empty split.
using SplitMatrix = std::array<std::optional<SplitBounds>, 3>;

/// Parses one to three proportions with any sum, separated by any characters that are not part of a number. Missing
/// ones are 0. Errors: config.
Result<SplitMatrix> parse_split(std::string_view text);
/// Whole elements of a split: both bounds are rounded to the nearest integer, halves to even.
IndexRange elements_of(const SplitBounds& bounds, std::int64_t elements);

}  // namespace accrue
