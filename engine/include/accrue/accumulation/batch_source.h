// SPDX-License-Identifier: Apache-2.0
// BatchSource: the interface that a loader wrapper needs: one batch after another, the end of an epoch, and the length
// if known. Any range with begin() and end() can be one, including the loaders of torch::data. Thread: the training
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <utility>

namespace accrue {

template <typename Batch>
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Goes back to the first batch for a new epoch, even if the last one was not finished.
  virtual void reset() = 0;
  /// Returns the next batch; none at the end of the epoch, and until reset().
  virtual std::optional<Batch> next() = 0;
  /// L, batches per epoch; none for a stream.
  virtual std::optional<std::int64_t> length() const { return std::nullopt; }
  /// Whether a wrapper that keeps only the beginning of an epoch must read and drop the rest, for sources that restart
  /// only at their end. False for LibTorch's loaders, which need no draining.
  virtual bool drained_when_cut() const { return true; }
};

/// Source over any range: a container, or a loader of torch::data, whose iterators end by themselves and whose begin()
/// starts a new epoch. The range must outlive the source. A loader of torch::data with workers cannot begin an epoch
/// while they hold batches of the last one. These are read then, and, if the length is known, when the source is
/// destroyed. Use an endless data set only with a loader without workers.
template <typename Range>
class RangeSource final : public BatchSource<std::decay_t<decltype(*std::declval<Range&>().begin())>> {
 public:
  using Batch = std::decay_t<decltype(*std::declval<Range&>().begin())>;
  explicit RangeSource(Range& range, std::optional<std::int64_t> length = std::nullopt)
      : range_(range), length_(length) {}

  ~RangeSource() override {
    try {
      if (length_) reset();
    } catch (...) {  // the batch cannot be made, and is not needed
    }
  }
  RangeSource(const RangeSource&) = delete;
  RangeSource& operator=(const RangeSource&) = delete;

  void reset() override {
    if (has_workers())
      while (at_ && next()) {
      }
    at_.reset();
  }
  std::optional<Batch> next() override {
    if (!at_)
      at_.emplace(range_.begin());
    else if (*at_ != range_.end())
      ++*at_;
    if (*at_ == range_.end()) return std::nullopt;
    return **at_;
  }
  std::optional<std::int64_t> length() const override { return length_; }
  bool drained_when_cut() const override { return !of_libtorch; }
  /// The underlying range.
  Range& range() const { return range_; }

 private:
  static constexpr bool of_libtorch = requires(const Range& loader) { loader.options().workers; };
  bool has_workers() const {
    if constexpr (of_libtorch)
      return range_.options().workers > 0;
    else
      return false;
  }

  Range& range_;
  std::optional<std::int64_t> length_;
  std::optional<decltype(std::declval<Range&>().begin())> at_;
};

template <typename Range>
RangeSource<Range> source_of(Range& range, std::optional<std::int64_t> length = std::nullopt) {
  if constexpr (std::ranges::sized_range<Range>)
    if (!length) length = static_cast<std::int64_t>(std::ranges::size(range));
  return RangeSource<Range>(range, length);
}

}  // namespace accrue
