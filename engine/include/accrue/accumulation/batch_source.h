// SPDX-License-Identifier: Apache-2.0
// BatchSource: what a loader wrapper needs of a loader: batches one after another, the end of an epoch, and the length
// where it is known. Any range with begin() and end() becomes one, the loaders of torch::data among them.
// Thread: the training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace accrue {

template <typename Batch>
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Back to the first batch: a new epoch.
  virtual void reset() = 0;
  /// The next batch, or nothing at the end of the epoch, and nothing again until reset().
  virtual std::optional<Batch> next() = 0;
  /// L, batches per epoch; nothing for a stream.
  virtual std::optional<std::int64_t> length() const { return std::nullopt; }
  /// A new epoch begins well only if this one was read to its end, as with loaders that fill a pipeline ahead: who
  /// stops early must pull the rest and throw it away.
  virtual bool must_be_drained() const { return false; }
};

/// A source over any range: a container, or a loader of torch::data, whose iterators end by themselves and whose
/// begin() starts a new epoch. The range must outlive the source.
template <typename Range>
class RangeSource final : public BatchSource<std::decay_t<decltype(*std::declval<Range&>().begin())>> {
 public:
  using Batch = std::decay_t<decltype(*std::declval<Range&>().begin())>;
  explicit RangeSource(Range& range, std::optional<std::int64_t> length = std::nullopt)
      : range_(range), length_(length) {}

  void reset() override { at_.reset(); }
  std::optional<Batch> next() override {
    if (!at_)
      at_.emplace(range_.begin());
    else if (*at_ != range_.end())
      ++*at_;
    if (*at_ == range_.end()) return std::nullopt;
    return **at_;
  }
  std::optional<std::int64_t> length() const override { return length_; }
  /// LibTorch's loader refuses to begin anew while its workers have batches of the last epoch in hand.
  bool must_be_drained() const override {
    if constexpr (requires(const Range& loader) { loader.options().workers; })
      return range_.options().workers > 0;
    else
      return false;
  }

 private:
  Range& range_;
  std::optional<std::int64_t> length_;
  std::optional<decltype(std::declval<Range&>().begin())> at_;
};

template <typename Range>
RangeSource<Range> source_of(Range& range, std::optional<std::int64_t> length = std::nullopt) {
  return RangeSource<Range>(range, length);
}

}  // namespace accrue
