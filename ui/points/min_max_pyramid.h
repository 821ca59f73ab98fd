// SPDX-License-Identifier: GPL-3.0-or-later
// MinMaxPyramid: smallest and largest finite value of any index range in O(log n). Bins are anchored at index 0, so
// appending changes only the last bin of each level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "chunked.h"

namespace accrue::ui {

/// Smallest and largest finite value of a range, and the first index of each.
struct MinMax {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::uint32_t lowAt = 0;
  std::uint32_t highAt = 0;

  bool empty() const { return low > high; }
  void add(std::size_t index, double value) {
    if (!(value - value == 0.0)) return;  // excludes NaN and infinities
    if (value < low) {
      low = value;
      lowAt = static_cast<std::uint32_t>(index);
    }
    if (value > high) {
      high = value;
      highAt = static_cast<std::uint32_t>(index);
    }
  }
  /// `later` covers indices after this one's.
  void add(const MinMax& later) {
    if (later.low < low) {
      low = later.low;
      lowAt = later.lowAt;
    }
    if (later.high > high) {
      high = later.high;
      highAt = later.highAt;
    }
  }
  bool operator==(const MinMax&) const = default;
};

class MinMaxPyramid {
 public:
  static constexpr std::size_t leaf = 16;   ///< values per bin of the lowest level
  static constexpr std::size_t fanOut = 8;  ///< bins per bin of the next level

  /// Takes the newly pushed value with this index.
  void append(std::size_t index, double value);
  /// Returns the extremes of values[first, last).
  MinMax range(const Chunked<double>& values, std::size_t first, std::size_t last) const;
  /// Forgets everything from `size` on; `values` still has the kept ones.
  void truncate(const Chunked<double>& values, std::size_t size);
  std::size_t levels() const { return levels_.size(); }

 private:
  std::vector<Chunked<MinMax>> levels_;
};

}  // namespace accrue::ui
