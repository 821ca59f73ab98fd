// SPDX-License-Identifier: GPL-3.0-or-later
// MinMaxPyramid: smallest and largest finite value of any index range in O(log n). Bins are anchored at index 0, so
// appending changes only the last bin of each level: what was reduced once stays as it was.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "models/chunked.h"

namespace accrue::ui {

struct MinMax {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool empty() const { return low > high; }
  void add(double value) {  // NaN and infinities are no part of it
    if (!(value - value == 0.0)) return;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  void add(const MinMax& other) {
    if (other.low < low) low = other.low;
    if (other.high > high) high = other.high;
  }
  bool operator==(const MinMax&) const = default;
};

class MinMaxPyramid {
 public:
  static constexpr std::size_t leaf = 16;   ///< values a bin of the lowest level
  static constexpr std::size_t fanOut = 8;  ///< bins of a level a bin of the next

  /// Takes the value that was just pushed as number `index`.
  void append(std::size_t index, double value);
  /// Of values[first, last).
  MinMax range(const Chunked<double>& values, std::size_t first, std::size_t last) const;
  /// Forgets everything from `size` on; `values` still holds the kept ones.
  void truncate(const Chunked<double>& values, std::size_t size);
  std::size_t levels() const { return levels_.size(); }

 private:
  std::vector<std::vector<MinMax>> levels_;
};

}  // namespace accrue::ui
