// SPDX-License-Identifier: Apache-2.0
// Sharing of a source of batches that all W ranks have. Every rank reads all batches, a round of W ahead. Rank
// r keeps the batches r, r + W, ..., or with split_batches its part of each. So every rank sees the last round and its
// gaps, and all handle them alike. Every rank therefore makes every batch; if that is too slow, give map_loader()
// the samples, or use a source that is sharded already.
// A batch that is repeated whole shares its tensors with its first use, including in-place changes of the loop.
// Source: Hugging Face Accelerate 1.15, BatchSamplerShard and IterableDatasetShard. Thread: the training thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/accumulation/accelerate/batch_rows.h"
#include "accrue/accumulation/batch_source.h"
#include "accrue/comm/communicator.h"
#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue::accelerate {

/// Data of a rank in one micro-step.
template <typename Batch>
struct LoaderPiece {
  std::optional<Batch> batch;
  bool empty = false;       ///< no sample on this rank
  bool some_empty = false;  ///< some rank may have no sample
  /// As ActiveLoader::remainder(), for a last round with known samples.
  std::int64_t remainder = -1;
};

/// Pieces of one epoch, equally many on every rank: one per call, then none.
template <typename Batch>
using LoaderPieces = std::function<std::optional<LoaderPiece<Batch>>()>;

/// Returns `batch` without its rows; none if it cannot be cut.
template <typename Batch>
std::optional<Batch> without_rows(const Batch& batch) {
  if constexpr (HasRows<Batch>)
    if (rows_of(batch)) return BatchRows<Batch>::range(batch, 0, 0);
  return std::nullopt;
}

/// Whether all ranks have the same known length. Collective: the axis.
bool lengths_agree(std::optional<std::int64_t> length, Communicator& axis);
/// Returns the number of ranks with `yes`. Collective: the axis.
std::int64_t ranks_that(bool yes, Communicator& axis);

struct SourceShare {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  UnevenRanks uneven = UnevenRanks::repeat;
  bool split = false;
  /// Batches of a round; with split, the parts of one batch.
  std::int64_t width() const { return split ? 1 : world; }
};

/// Errors: throw std::invalid_argument, on every rank.
[[noreturn]] void refuse_different_sources();
[[noreturn]] void refuse_to_cut(const std::string& why, std::int64_t ranks);
[[noreturn]] void refuse_to_make_empty();

template <typename Batch>
class SharedSource final {
 public:
  /// Collective: the axis.
  SharedSource(BatchSource<Batch>& source, SourceShare share, Communicator& axis)
      : source_(source), share_(share), axis_(axis) {
    source_.reset();
    alike_ = lengths_agree(source_.length(), axis_);
    ahead_ = source_.next();
    if (ahead_) whole_ = rows_of(*ahead_);
  }

  std::optional<LoaderPiece<Batch>> next() {
    read_round();
    if (round_.empty()) return std::nullopt;
    if (share_.world == 1) return LoaderPiece<Batch>{std::move(round_.front())};
    return share_.split ? part_of_batch() : batch_of_round();
  }

 private:
  using Rows = BatchRows<Batch>;

  void read_round() {
    do {
      round_.clear();
      for (; ahead_ && std::ssize(round_) < share_.width(); ahead_ = source_.next()) {
        if constexpr (std::copy_constructible<Batch>)
          if (repeats() && std::ssize(first_) < share_.width()) first_.push_back(*ahead_);
        round_.push_back(std::move(*ahead_));
      }
      if (!alike_ && !lengths_agree(std::ssize(round_), axis_)) refuse_different_sources();
    } while (drops_short_batch());
  }
  bool repeats() const { return share_.world > 1 && share_.uneven == UnevenRanks::repeat; }
  bool drops_short_batch() const {
    if (!share_.split || share_.world == 1 || share_.uneven != UnevenRanks::drop || round_.empty()) return false;
    const auto rows = rows_of(round_.front());
    return rows && whole_ && *rows < *whole_;
  }

  std::optional<LoaderPiece<Batch>> batch_of_round() {
    const std::int64_t got = std::ssize(round_);
    const bool mine = share_.rank < got;
    if (ahead_) return LoaderPiece<Batch>{std::move(round_[share_.rank])};
    if (share_.uneven == UnevenRanks::repeat) return completed();
    if (got < share_.world && share_.uneven == UnevenRanks::drop) return std::nullopt;
    if (mine) return LoaderPiece<Batch>{std::move(round_[share_.rank]), false, got < share_.world};
    return without_sample();
  }

  /// Returns the last round, filled up with samples from the epoch's start; with whole batches from there if samples
  /// cannot be separated.
  std::optional<LoaderPiece<Batch>> completed() {
    const std::int64_t got = std::ssize(round_);
    LoaderPiece<Batch> piece;
    if constexpr (HasRows<Batch>)
      if (can_be_joined()) {
        std::int64_t rows = 0;
        for (const Batch& each : round_) rows += rows_of(each).value_or(0);
        piece.remainder = rows < *whole_ * share_.world ? rows : 0;
        const std::int64_t of_last = std::min(*rows_of(round_.back()), *whole_);
        const std::int64_t place = share_.rank - got + 1;  // among the ranks that the last batch and the start fill
        if (place > 0 || (place == 0 && of_last < *whole_)) {
          const Batch filled = made_longer(Rows::range(round_.back(), 0, of_last), (place + 1) * *whole_);
          piece.batch = Rows::range(filled, place * *whole_, *whole_);
        }
      }
    if (!piece.batch && share_.rank < got) piece.batch = std::move(round_[share_.rank]);
    if constexpr (std::copy_constructible<Batch>)
      if (!piece.batch) piece.batch = first_[(share_.rank - got) % std::ssize(first_)];
    return piece;
  }

  std::optional<LoaderPiece<Batch>> part_of_batch() {
    const auto rows = rows_of(round_.front());
    if (!rows || !whole_) refuse_to_cut("the batches are not tensors with rows, nor made of such", share_.world);
    if (*whole_ % share_.world != 0)
      refuse_to_cut("the first batch has " + std::to_string(*whole_) + " samples", share_.world);
    if (*rows > *whole_)
      refuse_to_cut("a batch has " + std::to_string(*rows) + " samples, and the first one " + std::to_string(*whole_),
                    share_.world);
    const std::int64_t part = *whole_ / share_.world;
    LoaderPiece<Batch> piece;
    if constexpr (HasRows<Batch>) {
      Batch& batch = round_.front();
      if (share_.uneven == UnevenRanks::repeat && *rows < *whole_) {
        if (!can_be_joined()) refuse_to_cut("a shorter batch does not fit to the first", share_.world);
        batch = made_longer(std::move(batch), *whole_);
        piece.remainder = *rows;
      }
      const std::int64_t begin = std::min(part * share_.rank, *rows_of(batch));
      const std::int64_t count = std::min(part, *rows_of(batch) - begin);
      if (count == 0) return without_sample();
      piece.batch = Rows::range(batch, begin, count);
      piece.some_empty = (share_.world - 1) * part >= *rows_of(batch);
      if (!ahead_ && piece.remainder < 0 && share_.uneven == UnevenRanks::repeat) piece.remainder = 0;
    }
    return piece;
  }

  LoaderPiece<Batch> without_sample() {
    if (auto empty = without_rows(round_.front())) return {std::move(empty), true, true};
    refuse_to_make_empty();
  }

  /// Whether the last batch and the first batches of the epoch have rows of one shape.
  bool can_be_joined() const {
    if constexpr (HasRows<Batch>) {
      const auto fits = [this](const Batch& each) {
        return rows_of(each) && Rows::joined(Rows::range(each, 0, 0), Rows::range(round_.back(), 0, 0));
      };
      return whole_ && *whole_ > 0 && std::all_of(first_.begin(), first_.end(), fits);
    }
    return false;
  }
  /// Returns `rows` samples: those of the batch, then those of the epoch's start, repeated after the kept ones.
  Batch made_longer(Batch batch, std::int64_t rows) const {
    for (std::size_t i = 0; *rows_of(batch) < rows; i = (i + 1) % first_.size())
      batch = Rows::joined(batch, first_[i]).value();
    return Rows::range(batch, 0, rows);
  }

  BatchSource<Batch>& source_;
  SourceShare share_;
  Communicator& axis_;
  bool alike_ = false;                 ///< all ranks know the same length
  std::optional<Batch> ahead_;         ///< none: the current round is the last
  std::vector<Batch> round_;           ///< in rank order
  std::vector<Batch> first_;           ///< the epoch's first round, for repetition
  std::optional<std::int64_t> whole_;  ///< samples of the first batch
};

/// Returns the pieces of a shared source, without the first rounds. Collective: the axis.
template <typename Batch>
LoaderPieces<Batch> shared_pieces(BatchSource<Batch>& source, const SourceShare& share, Communicator& axis,
                                  std::int64_t first) {
  auto shared = std::make_shared<SharedSource<Batch>>(source, share, axis);
  for (std::int64_t i = 0; i < first; ++i) (void)shared->next();
  return [shared] { return shared->next(); };
}

/// Returns the pieces of a source of this rank's own. Unless all ranks know that their lengths are equal, they agree on
/// every batch; a rank without batches gets its last one without rows. Errors: throws std::invalid_argument, on every
/// rank, if one of them never had a batch. Collective: the axis.
template <typename Batch>
LoaderPieces<Batch> own_pieces(BatchSource<Batch>& source, Communicator& axis, bool drop, std::int64_t first) {
  source.reset();
  const bool alone = lengths_agree(source.length(), axis);
  const auto last = std::make_shared<std::optional<Batch>>();  // without rows: the form of an empty batch
  for (std::int64_t i = 0; i < first; ++i)
    if (const auto passed = source.next(); passed && !alone && !drop) *last = without_rows(*passed);
  return [&source, &axis, drop, alone, last]() -> std::optional<LoaderPiece<Batch>> {
    std::optional<Batch> batch = source.next();
    const std::int64_t with = alone ? batch.has_value() * axis.size() : ranks_that(batch.has_value(), axis);
    if (with == 0 || (drop && with < axis.size())) return std::nullopt;
    if (batch && !alone && !drop) *last = without_rows(*batch);
    const bool empty = !batch;
    if (with < axis.size() && ranks_that(!empty || *last, axis) < axis.size()) refuse_to_make_empty();
    if (empty) batch = without_rows(**last);
    return LoaderPiece<Batch>{std::move(batch), empty, with < axis.size()};
  };
}

}  // namespace accrue::accelerate
