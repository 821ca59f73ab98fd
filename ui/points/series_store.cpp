// SPDX-License-Identifier: GPL-3.0-or-later
#include "series_store.h"

#include <algorithm>
#include <cmath>

#include "kit/no_value.h"

namespace accrue::ui {

void ClockColumn::push(double position) {
  const std::size_t index = offsets_.size();
  if (index > 0) position = std::max(position, (*this)[index - 1]);
  if (!std::isfinite(position)) position = index > 0 ? (*this)[index - 1] : 0.0;
  if (index % blockSize == 0) bases_.push(position);
  offsets_.push(static_cast<float>(position - bases_.back()));
}

void ClockColumn::truncate(std::size_t size) {
  offsets_.truncate(size);
  bases_.truncate((size + blockSize - 1) / blockSize);
}

template <typename Before>
std::size_t ClockColumn::partitionPoint(Before before) const {
  // Searches the bases first: there are few of them.
  const auto search = [&before](std::size_t low, std::size_t high, const auto& positions) {
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (before(positions[middle]))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const std::size_t blocks = search(0, bases_.size(), bases_);
  const std::size_t first = blocks == 0 ? 0 : (blocks - 1) * blockSize;
  return search(first, std::min(first + blockSize, size()), *this);
}

std::size_t ClockColumn::lowerBound(double x) const {
  return partitionPoint([x](double position) { return position < x; });
}

std::size_t ClockColumn::upperBound(double x) const {
  return partitionPoint([x](double position) { return position <= x; });
}

ClockPoint ClockTable::point(std::size_t i) const {
  ClockPoint result;
  for (std::size_t c = 0; c < clockCount; ++c) result.at[c] = columns_[c][i];
  return result;
}

void ClockTable::append(const ClockPoint& point) {
  for (std::size_t c = 0; c < clockCount; ++c) columns_[c].push(point.at[c]);
}

void ClockTable::truncate(std::size_t size) {
  for (ClockColumn& column : columns_) column.truncate(size);
}

void SeriesStore::append(double value) {
  const std::size_t index = values_.size();
  values_.push(value);
  pyramid_.append(index, value);
  if (!isMeasured(value)) return;
  if (!std::isfinite(value)) {
    const MarkKind kind = std::isnan(value) ? MarkKind::notANumber
                          : value > 0       ? MarkKind::plusInfinity
                                            : MarkKind::minusInfinity;
    marks_.push({index, kind});
  } else if (value <= 0.0) {
    ++notPositive_;
  }
}

void SeriesStore::truncate(std::size_t size) {
  if (size >= values_.size()) return;
  for (std::size_t i = size; i < values_.size(); ++i)
    if (std::isfinite(values_[i]) && values_[i] <= 0.0) --notPositive_;
  values_.truncate(size);
  pyramid_.truncate(values_, size);
  std::size_t marked = marks_.size();
  while (marked > 0 && marks_[marked - 1].index >= size) --marked;
  marks_.truncate(marked);
  ++generation_;
}

std::size_t SeriesStore::nearest(Clock clock, double x) const {
  if (empty()) return size();
  const ClockColumn& column = this->clock(clock);
  const std::size_t after = std::min(column.lowerBound(x), size() - 1);
  if (after == 0) return 0;
  return x - column[after - 1] < column[after] - x ? after - 1 : after;
}

std::size_t SeriesStore::reading(Clock clock, double x) const {
  const std::size_t index = nearest(clock, x);
  if (index >= size() || size() < 2) return index;
  const ClockColumn& column = this->clock(clock);
  const bool last = index + 1 == size();
  const double step = last ? column[index] - column[index - 1] : column[index + 1] - column[index];
  const bool beyond = (last && x > column[index] + step) || (index == 0 && x < column[0] - step);
  return beyond ? size() : index;
}

}  // namespace accrue::ui
