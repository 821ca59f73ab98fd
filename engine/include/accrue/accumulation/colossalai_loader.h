// SPDX-License-Identifier: Apache-2.0
// GradAccumDataloader: an epoch of whole windows. Of L batches it yields the first L - L mod N. The preset's plan of
// one epoch says which, so the loader counts nothing. Thread: the training thread.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <ostream>
#include <utility>

#include "accrue/accumulation/accumulating.h"
#include "accrue/accumulation/batch_source.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue::colossalai {

/// Returns the plan of one epoch of L batches in windows of N under this system's rules: the tail is dropped.
/// Errors: throws std::invalid_argument if N < 1, or if the source has no known length.
WindowShape epoch_shape(std::optional<std::int64_t> length, std::int64_t accumulate_size, const Replays& replay = {});
/// Warns, through LibTorch, if an epoch is shorter than a window, so that nothing is ever trained on.
void warn_of_empty_epoch(const WindowShape& shape);
/// Throws std::logic_error: the source ended after fewer batches than it declared, so a window cannot be completed.
[[noreturn]] void refuse_short_source(std::int64_t batches, const WindowShape& shape);

/// Source: colossalai.utils.gradient_accumulation.GradAccumDataloader.
template <typename Batch>
class GradAccumDataloader final : public BatchSource<Batch> {
 public:
  /// `dataloader` must have a length and outlive this. For a source that is not a LibTorch loader, the tail is read and
  /// dropped when the last kept batch is fetched. Replay::drain_early reproduces an early version of the original: the
  /// tail is dropped earlier, so the last kept batch is lost too and the epoch ends one batch early. Errors: throws
  /// std::invalid_argument.
  GradAccumDataloader(BatchSource<Batch>& dataloader, std::int64_t accumulate_size, const Replays& replay = {})
      : source_(dataloader),
        plan_(epoch_shape(dataloader.length(), accumulate_size, replay)),
        totals_(total_windows(plan_.shape())) {
    warn_of_empty_epoch(plan_.shape());
  }

  /// The wrapped source.
  BatchSource<Batch>& source() { return source_; }
  /// Batches that an epoch yields.
  std::optional<std::int64_t> length() const override { return totals_.micro_steps; }
  std::int64_t accumulate_size() const { return plan_.shape().steps; }
  /// Batches per epoch that are never yielded, at the same places each epoch: a bias unless the data is shuffled.
  std::int64_t dropped() const { return totals_.dropped_batches; }

  void reset() override {
    source_.reset();
    plan_.restore({});
  }

  std::optional<Batch> next() override {
    const auto micro = plan_.next();
    if (!micro) return std::nullopt;
    const bool drain = micro->epoch_ends && source_.drained_when_cut();
    if (drain && plan_.shape().knobs.replays(Replay::drain_early)) drain_source();
    auto batch = source_.next();
    if (!batch && !plan_.shape().knobs.replays(Replay::drain_early)) refuse_short_source(micro->batch, plan_.shape());
    if (drain) drain_source();
    return batch;
  }

  /// A range over one epoch, which begin() starts. The loader is its own iterator, so a second begin() ends the first.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator() = default;
    explicit Iterator(GradAccumDataloader& loader) : loader_(&loader) { ++*this; }
    reference operator*() { return *batch_; }
    pointer operator->() { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    /// Equal if both are at the end.
    bool operator==(const Iterator& other) const { return batch_.has_value() == other.batch_.has_value(); }

   private:
    GradAccumDataloader* loader_ = nullptr;
    std::optional<Batch> batch_;
  };
  Iterator begin() {
    reset();
    return Iterator(*this);
  }
  Iterator end() { return {}; }

 private:
  void drain_source() {
    while (source_.next()) {
    }
  }

  BatchSource<Batch>& source_;
  AccumulationWindow plan_;
  WindowTotals totals_;
};

template <typename Batch>
std::ostream& operator<<(std::ostream& out, const GradAccumDataloader<Batch>& loader) {
  return out << "GradAccumDataloader: " << *loader.length() << " batches an epoch, in windows of "
             << loader.accumulate_size() << "; " << loader.dropped() << " are dropped";
}

}  // namespace accrue::colossalai
