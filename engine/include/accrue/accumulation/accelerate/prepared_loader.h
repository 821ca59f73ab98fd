// SPDX-License-Identifier: Apache-2.0
// PreparedLoader: a loader that knows one batch ahead when its epoch ends, so that a micro-step's place in a window is
// decided before its forward, and that gives every rank the same number of micro-steps. Map-style data is sharded by a
// pure function that every rank evaluates for all ranks, so a rank with fewer batches knows it beforehand. It then
// receives empty batches without rows (join, empty_micro_steps) or repeats samples from the start (repeat,
// even_batches); or all ranks drop the surplus (drop). Sources of batches, including loaders of torch::data, are shared
// batch by batch (see source_pieces.h), unless each rank has its own.
//
//   auto loader = accelerator.prepare(map_loader(samples, fetch, {.batch_size = 4}));
//   for (auto& batch : loader) { ... }
//
//   auto source = source_of(*torch_loader); // the same on all ranks, shuffled only from the same seed
//   auto loader = accelerator.prepare(source);
//
// Source: Hugging Face Accelerate 1.15, DataLoaderShard and BatchSamplerShard. Thread: the training thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "accrue/accumulation/accelerate/batch_rows.h"
#include "accrue/accumulation/accelerate/gradient_state.h"
#include "accrue/accumulation/accelerate/source_pieces.h"
#include "accrue/accumulation/batch_source.h"
#include "accrue/comm/communicator.h"
#include "accrue/run/facts/sample_order.h"

namespace accrue::accelerate {

/// For a source, whose batches exist already, batch_size, shuffle and drop_last must keep these values.
struct LoaderOptions {
  std::int64_t batch_size = 1;  ///< per rank, or of all ranks together with split_batches
  bool shuffle = false;
  bool drop_last = false;  ///< drop samples that do not fill a batch on every rank
  /// Behaviour of ranks with fewer batches. Empty: repeat with even_batches, else join. With join and empty_micro_steps
  /// they run the loop as often as the others, on batches without rows; with join length() does not count these. A
  /// source that is sharded already can drop or join, and joins by default, because only one rank has its samples.
  std::optional<UnevenRanks> uneven_ranks;
  /// The source holds only this rank's share: it is read as it is, also with split_batches.
  bool already_sharded = false;
};

/// Map-style data: `fetch` makes a batch of the given samples, in order. An empty batch is one of its batches without
/// rows; if batches cannot be cut, `fetch` is called without samples.
template <typename Batch>
struct MapLoader {
  std::int64_t samples = 0;
  std::function<Batch(const std::vector<std::int64_t>&)> fetch;
  LoaderOptions options;
};

template <typename Fetch>
auto map_loader(std::int64_t samples, Fetch fetch, LoaderOptions options = {}) {
  using Batch = std::decay_t<std::invoke_result_t<Fetch&, const std::vector<std::int64_t>&>>;
  return MapLoader<Batch>{samples, std::move(fetch), options};
}

/// A data set of torch::data with its transforms, or anything with size() and get_batch(). It must outlive the loader.
template <typename Dataset>
requires requires(Dataset& data) {
  data.size().value();
}
auto map_loader(Dataset& data, LoaderOptions options = {}) {
  auto fetch = [&data](const std::vector<std::int64_t>& samples) {
    std::vector<std::size_t> request(samples.begin(), samples.end());
    return data.get_batch(request);
  };
  return map_loader(static_cast<std::int64_t>(data.size().value()), std::move(fetch), options);
}

/// Part of a loader that does not depend on the type of its batches.
class PreparedLoaderBase {
 public:
  explicit PreparedLoaderBase(GradientState& state) : state_(state), held_(state.weak_from_this().lock()) {
    state.add(*this);
  }
  virtual ~PreparedLoaderBase() { state_.remove(*this); }
  /// Takes the other loader's place in the order of saved state. Not allowed during a pass over it or a JoinScope.
  PreparedLoaderBase(PreparedLoaderBase&& other) noexcept
      : state_(other.state_),
        held_(other.held_),  // NOLINT(performance-move-constructor-init): the other's destructor needs the state too
        override_(other.override_),
        first_(other.first_),
        epoch_(other.epoch_),
        position_(other.position_) {
    state_.replace(other, *this);
  }
  PreparedLoaderBase(const PreparedLoaderBase&) = delete;
  PreparedLoaderBase& operator=(const PreparedLoaderBase&) = delete;

  /// Skips so many batches in the next pass.
  void skip_first_batches(std::int64_t batches) { first_ = batches; }
  /// Number of the current pass, or else of the next one; it seeds the shuffle.
  std::int64_t epoch() const { return epoch_; }
  void set_epoch(std::int64_t epoch) { epoch_ = epoch; }
  /// Batches that the current pass has returned; 0 between passes.
  std::int64_t position() const { return position_; }

  /// Overrides the behaviour of ranks with fewer batches from the next pass on, while set.
  void override_uneven(std::optional<UnevenRanks> uneven) { override_ = uneven; }
  std::optional<UnevenRanks> uneven_override() const { return override_; }

 protected:
  GradientState& state_;
  std::shared_ptr<GradientState> held_;  ///< the loader may outlive the Accelerator, then without micro-steps
  std::optional<UnevenRanks> override_;
  std::int64_t first_ = 0;
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
};

/// Returns the order in which the ranks of `state` share `samples`. Errors: throws std::invalid_argument for a batch
/// size below 1, or one that split_batches cannot divide evenly.
SampleOrder shared_order(const GradientState& state, std::int64_t samples, const LoaderOptions& options);
/// Number of batches of an epoch with samples of `rank` if it joins; else of all its batches.
std::int64_t own_batches(SampleOrder order, std::int64_t rank);
/// Throws std::out_of_range for a loop that continued after the end of the pass.
[[noreturn]] void refuse_beyond_the_end();
/// Samples of an incomplete last batch, over all ranks.
std::int64_t order_remainder(const SampleOrder& order);
/// Whether some rank has no sample at `batch`.
bool some_rank_is_empty(SampleOrder order, std::int64_t batch);

/// Returns how a source is shared. `cuts`, `copies`: capabilities of its batches. Errors: throws std::invalid_argument
/// for an option that a source cannot follow.
SourceShare source_share(const GradientState& state, const LoaderOptions& options, std::int64_t rank, bool cuts,
                         bool copies);
/// Batches of an epoch on one rank; none if not known beforehand.
std::optional<std::int64_t> shared_length(std::optional<std::int64_t> length, const SourceShare& share);

template <typename Batch>
LoaderPieces<Batch> map_pieces(const MapLoader<Batch>& loader, const SampleOrder& order, std::int64_t rank,
                               std::int64_t epoch, std::int64_t first) {
  return [&loader, order, rank, epoch, at = first]() mutable -> std::optional<LoaderPiece<Batch>> {
    if (at >= order.batches_per_epoch()) return std::nullopt;
    const bool some_empty = some_rank_is_empty(order, at);
    const auto samples = order.batch(epoch, at++, rank);
    if (HasRows<Batch> && samples.empty())
      if (auto empty = without_rows(loader.fetch({0}))) return LoaderPiece<Batch>{std::move(empty), true, true};
    return LoaderPiece<Batch>{loader.fetch(samples), samples.empty(), some_empty};
  };
}

template <typename Batch>
class PreparedLoader final : public PreparedLoaderBase {
  class Pass;

 public:
  PreparedLoader(MapLoader<Batch> loader, GradientState& state, Communicator& axis)
      : PreparedLoaderBase(state), map_(std::move(loader)), axis_(axis) {
    (void)order();  // reports an invalid batch size here
  }
  PreparedLoader(BatchSource<Batch>& source, LoaderOptions options, GradientState& state, Communicator& axis)
      : PreparedLoaderBase(state), map_{0, {}, options}, source_(&source), axis_(axis) {
    (void)share();  // reports an invalid option here
  }
  PreparedLoader(PreparedLoader&&) noexcept = default;

  /// Batches of this rank in an epoch, without empty ones of join; none for a stream of unknown length.
  std::optional<std::int64_t> length() const {
    if (!source_) return own_batches(order(), axis_.rank());
    return map_.options.already_sharded ? source_->length() : shared_length(source_->length(), share());
  }
  /// The wrapped source of batches; null for map-style data.
  BatchSource<Batch>* source() const { return source_; }
  const MapLoader<Batch>& map() const { return map_; }
  /// Returns the sharing of map-style data.
  SampleOrder order() const {
    LoaderOptions options = map_.options;
    if (override_) options.uneven_ranks = override_;
    return shared_order(state_, map_.samples, options);
  }

  /// A pass over one epoch. It ends with its last batch or with the iterator.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(std::shared_ptr<Pass> pass) : pass_(std::move(pass)) {}
    /// Errors: throws std::out_of_range after the last batch.
    Batch& operator*() const { return pass_->batch(); }
    Batch* operator->() const { return &pass_->batch(); }
    Iterator& operator++() {
      pass_->advance();
      return *this;
    }
    void operator++(int) { pass_->advance(); }
    bool operator==(std::default_sentinel_t) const { return pass_->over; }

   private:
    std::shared_ptr<Pass> pass_;
  };
  Iterator begin() { return Iterator(std::make_shared<Pass>(*this)); }
  std::default_sentinel_t end() const { return {}; }

 private:
  class Pass final : public ActiveLoader {
   public:
    explicit Pass(PreparedLoader& loader) : loader_(loader), pieces_(loader.open()), ahead_(pieces_()) {
      if (!loader.source_) remainder_ = order_remainder(loader.order());
      loader.position_ = std::exchange(loader.first_, 0);
      loader.state_.enter(*this);
      advance();
    }
    ~Pass() override {
      loader_.position_ = 0;
      if (!over) loader_.state_.leave(*this);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    bool end_of_dataloader() const override { return !ahead_; }
    std::int64_t remainder() const override { return remainder_; }
    bool empty() const override { return current.empty; }
    bool some_rank_is_empty() const override { return current.some_empty; }

    Batch& batch() {
      if (over) refuse_beyond_the_end();
      return *current.batch;
    }

    void advance() {
      if (over) return;
      if (!ahead_) return finish();
      current = std::move(*ahead_);
      if (loader_.source_) remainder_ = current.remainder;
      ahead_ = pieces_();
      ++loader_.position_;
      const AcceleratorOptions& options = loader_.state_.options();
      if (options.device_placement) move_to(*current.batch, options.device);
    }

    LoaderPiece<Batch> current;
    bool over = false;

   private:
    void finish() {
      over = true;
      ++loader_.epoch_;
      loader_.state_.leave(*this);
    }

    PreparedLoader& loader_;
    LoaderPieces<Batch> pieces_;
    std::optional<LoaderPiece<Batch>> ahead_;
    std::int64_t remainder_ = -1;
  };

  LoaderPieces<Batch> open() {
    if (!source_) return map_pieces(map_, order(), axis_.rank(), epoch_, first_);
    const SourceShare how = share();
    if (!map_.options.already_sharded) return shared_pieces(*source_, how, axis_, first_);
    return own_pieces(*source_, axis_, how.uneven == UnevenRanks::drop, first_);
  }
  SourceShare share() const {
    LoaderOptions options = map_.options;
    // A source that is sharded already cannot repeat samples.
    if (override_ && !(options.already_sharded && override_ == UnevenRanks::repeat)) options.uneven_ranks = override_;
    return source_share(state_, options, axis_.rank(), HasRows<Batch>, std::copy_constructible<Batch>);
  }

  MapLoader<Batch> map_;
  BatchSource<Batch>* source_ = nullptr;
  Communicator& axis_;
};

template <typename Batch>
std::ostream& operator<<(std::ostream& out, const PreparedLoader<Batch>& loader) {
  const auto length = loader.length();
  return out << "PreparedLoader: " << (length ? std::to_string(*length) : "an unknown number of")
             << " batches an epoch; epoch " << loader.epoch() << ", " << loader.position() << " handed out";
}

}  // namespace accrue::accelerate
