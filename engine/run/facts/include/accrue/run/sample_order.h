// SPDX-License-Identifier: Apache-2.0
// Which samples a rank trains on at (epoch, batch): a pure function of the seed, so a resumed run needs no iterator
// state and every layout with the same global batch sees the same samples in the same update. The shuffle is a
// permutation that can be asked at any index (a keyed Feistel network with cycle walking), so nothing of the size of
// the data is held in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "accrue/run/accumulation_knobs.h"
#include "accrue/run/data_samplers.h"

namespace accrue {

/// A permutation of [0, size) keyed by (seed, epoch); index -> sample in constant time.
class SamplePermutation {
 public:
  SamplePermutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch);
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::int64_t size_;
  std::uint64_t half_bits_;
  std::uint64_t keys_[4];
};

struct SampleOrder {
  std::int64_t samples = 0;
  std::int64_t micro_batch = 1;  ///< per rank
  std::int64_t world = 1;        ///< data-parallel ranks
  bool shuffle = true;
  std::uint64_t seed = 0;
  UnevenRanks uneven = UnevenRanks::empty_micro_steps;
  bool split_batches = false;  ///< accelerate: one batch of micro_batch * world is cut in world parts
  bool fill_alone = false;     ///< repeat applies to a lone rank too
  bool cyclic = false;         ///< the order is that of Megatron-LM's cyclic sampler, which drops an epoch's tail
  bool sharding = true;        ///< of a cyclic one
  std::int64_t consumed = 0;   ///< of a cyclic one: samples of all ranks that were read before; whole batches

  /// L: batches per epoch, the same on all ranks. repeat and empty_micro_steps round up, drop rounds down to full
  /// rounds of batches.
  std::int64_t batches_per_epoch() const;
  /// The samples of a rank's batch; shorter than micro_batch at the end of the data, empty for an empty micro-step.
  /// With repeat a short tail is completed from the start of the epoch's order.
  std::vector<std::int64_t> batch(std::int64_t epoch, std::int64_t batch, std::int64_t rank) const;
  /// Of a cyclic order with batches in an epoch: the sampler that batch() makes anew each time. It caches the epoch's
  /// order: keep it when reading batches in sequence, and place it by continue_after(consumed_before(...)).
  CyclicSampler sampler(std::int64_t rank) const;
  std::int64_t consumed_before(std::int64_t epoch, std::int64_t batch) const;
  /// How many of them, from the first, the epoch has not seen before: the others are repeats.
  std::int64_t fresh(std::int64_t batch, std::int64_t rank) const;
  /// Samples that all ranks train on at one batch index; a repeated sample counts each time.
  std::int64_t samples_in_batch(std::int64_t batch) const;
  /// Samples repeated to fill up ranks, per epoch.
  std::int64_t repeated_per_epoch() const;
  bool operator==(const SampleOrder&) const = default;
};

}  // namespace accrue
