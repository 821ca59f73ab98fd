// SPDX-License-Identifier: GPL-3.0-or-later
// SeriesStore: one measured quantity, append-only, with a min/max pyramid and its non-finite points. ClockTable:
// positions of its points on every clock, shared by quantities that are measured together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "chunked.h"
#include "kit/clock.h"
#include "min_max_pyramid.h"

namespace accrue::ui {

/// Non-decreasing positions in 4 bytes each: a double every 64 points and float offsets from it. Exact for integers if
/// 64 points span less than 2^24, otherwise to 6e-8 of a block's span.
class ClockColumn {
 public:
  static constexpr std::size_t blockSize = 64;

  std::size_t size() const { return offsets_.size(); }
  double operator[](std::size_t i) const { return bases_[i / blockSize] + static_cast<double>(offsets_[i]); }
  /// A position before the last one is stored as the last one, so positions stay sorted.
  void push(double position);
  void truncate(std::size_t size);
  /// First index whose position is >= x.
  std::size_t lowerBound(double x) const;
  /// First index whose position is > x.
  std::size_t upperBound(double x) const;

 private:
  Chunked<float> offsets_;
  Chunked<double> bases_;

  /// First index that does not satisfy `before`, which holds for all positions up to some index.
  template <typename Before>
  std::size_t partitionPoint(Before before) const;
};

class ClockTable {
 public:
  std::size_t size() const { return columns_[0].size(); }
  const ClockColumn& operator[](Clock clock) const { return columns_[static_cast<std::size_t>(clock)]; }
  ClockPoint point(std::size_t i) const;
  void append(const ClockPoint& point);
  void truncate(std::size_t size);

 private:
  std::array<ClockColumn, clockCount> columns_;
};

enum class MarkKind { notANumber, plusInfinity, minusInfinity };
struct Mark {
  std::size_t index = 0;
  MarkKind kind = MarkKind::notANumber;
  bool operator==(const Mark&) const = default;
};

class SeriesStore {
 public:
  /// The table must outlive the store; the caller appends to both.
  explicit SeriesStore(const ClockTable& clocks) : clocks_(&clocks) {}

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  double value(std::size_t i) const { return values_[i]; }
  const Chunked<double>& values() const { return values_; }
  const ClockTable& clocks() const { return *clocks_; }
  const ClockColumn& clock(Clock clock) const { return (*clocks_)[clock]; }

  /// noValue if nothing was measured.
  void append(double value);
  void truncate(std::size_t size);
  /// Number of truncations: data derived from an older generation must be recomputed.
  std::uint64_t generation() const { return generation_; }

  /// Smallest and largest finite value of points [first, last).
  MinMax range(std::size_t first, std::size_t last) const { return pyramid_.range(values_, first, last); }
  const MinMaxPyramid& pyramid() const { return pyramid_; }
  const Chunked<Mark>& marks() const { return marks_; }
  /// Number of finite points that a logarithmic axis cannot show.
  std::size_t countNotPositive() const { return notPositive_; }
  /// Index of the point nearest to x on a clock; size() if there is none.
  std::size_t nearest(Clock clock, double x) const;
  /// Does the same, but returns size() if x is more than a step before the first point or after the last.
  std::size_t reading(Clock clock, double x) const;

 private:
  const ClockTable* clocks_;
  Chunked<double> values_;
  MinMaxPyramid pyramid_;
  Chunked<Mark> marks_;
  std::size_t notPositive_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace accrue::ui
