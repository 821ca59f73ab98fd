// SPDX-License-Identifier: Apache-2.0
// BatchSource: what a loader wrapper needs of a loader: batches one after another, the end of an epoch, and the length
// where it is known. Any range with begin() and end() becomes one, the loaders of torch::data among them.
// Thread: the training thread.
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
  /// Back to the first batch: a new epoch, also where the last one was left before its end.
  virtual void reset() = 0;
  /// The next batch, or nothing at the end of the epoch, and nothing again until reset().
  virtual std::optional<Batch> next() = 0;
  /// L, batches per epoch; nothing for a stream.
  virtual std::optional<std::int64_t> length() const { return std::nullopt; }
  /// A loader that keeps only the beginning of an epoch reads on to its end and drops the rest, for sources that start
  /// over there by themselves. False for LibTorch's loaders, which need no draining.
  virtual bool drained_when_cut() const { return true; }
};

/// A source over any range: a container, or a loader of torch::data, whose iterators end by themselves and whose
/// begin() starts a new epoch. The range must outlive the source. A loader of torch::data with workers begins no epoch
/// while they have batches of the last one left: what an epoch left unread is read then, and, where the length is
/// known, when the source goes. An endless one belongs in a loader without workers.
template <typename Range>
class RangeSource final : public BatchSource<std::decay_t<decltype(*std::declval<Range&>().begin())>> {
 public:
  using Batch = std::decay_t<decltype(*std::declval<Range&>().begin())>;
  explicit RangeSource(Range& range, std::optional<std::int64_t> length = std::nullopt)
      : range_(range), length_(length) {}

  ~RangeSource() override {
    try {
      if (length_) reset();
    } catch (...) {  // a batch that cannot be made, and is not needed
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
  /// What this reads.
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
