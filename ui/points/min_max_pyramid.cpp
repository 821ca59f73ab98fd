// SPDX-License-Identifier: GPL-3.0-or-later
#include "min_max_pyramid.h"

#include <algorithm>

namespace accrue::ui {

namespace {

MinMax scan(const Chunked<double>& values, std::size_t first, std::size_t last) {
  MinMax result;
  for (std::size_t i = first; i < last; ++i) result.add(i, values[i]);
  return result;
}

MinMax allOf(const Chunked<MinMax>& bins, std::size_t first) {
  MinMax all;
  for (std::size_t i = first; i < bins.size(); ++i) all.add(bins[i]);
  return all;
}

}  // namespace

void MinMaxPyramid::append(std::size_t index, double value) {
  MinMax single;
  single.add(index, value);
  std::size_t width = leaf;
  for (std::size_t level = 0;; ++level, width *= fanOut) {
    if (level == levels_.size()) {
      // A level begins when the one below has more than one bin; its first bin covers all of them.
      if (level > 0 && levels_[level - 1].size() < 2) return;
      levels_.emplace_back();
      if (level > 0) {
        levels_[level].push(allOf(levels_[level - 1], 0));
        return;
      }
    }
    Chunked<MinMax>& bins = levels_[level];
    if (index / width == bins.size()) {
      bins.push(single);
      continue;
    }
    MinMax newest = bins.back();
    newest.add(single);
    bins.setBack(newest);
  }
}

MinMax MinMaxPyramid::range(const Chunked<double>& values, std::size_t first, std::size_t last) const {
  last = std::min(last, values.size());
  if (first >= last) return {};
  // Walks right in the largest aligned bins that fit, in index order, so that "first index" is correct.
  MinMax result;
  std::size_t at = first;
  while (at < last) {
    std::size_t level = 0;
    std::size_t width = leaf;
    bool found = false;
    while (level < levels_.size() && at % width == 0 && at + width <= last) {
      found = true;
      ++level;
      width *= fanOut;
    }
    if (!found) {
      const std::size_t stop = std::min(last, (at / leaf + 1) * leaf);
      result.add(scan(values, at, stop));
      at = stop;
      continue;
    }
    --level;
    width /= fanOut;
    result.add(levels_[level][at / width]);
    at += width;
  }
  return result;
}

void MinMaxPyramid::truncate(const Chunked<double>& values, std::size_t size) {
  std::size_t width = leaf;
  for (std::size_t level = 0; level < levels_.size(); ++level, width *= fanOut) {
    Chunked<MinMax>& bins = levels_[level];
    bins.truncate((size + width - 1) / width);
    if (bins.empty() || size % width == 0) continue;
    const std::size_t first = (bins.size() - 1) * width;
    if (level == 0) {
      bins.setBack(scan(values, first, size));
      continue;
    }
    bins.setBack(allOf(levels_[level - 1], first / (width / fanOut)));
  }
  while (!levels_.empty() && (levels_.back().empty() || (levels_.size() > 1 && levels_[levels_.size() - 2].size() < 2)))
    levels_.pop_back();
}

}  // namespace accrue::ui
