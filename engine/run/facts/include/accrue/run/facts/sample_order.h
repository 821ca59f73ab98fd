// SPDX-License-Identifier: Apache-2.0
// Samples that a rank trains on at (epoch, batch): a pure function of the seed. So a resumed run needs no iterator
// state, and every layout with the same global batch uses the same samples in the same update. The shuffle is a
// permutation with random access (a keyed Feistel network with cycle walking), so memory does not grow with the data.
#pragma once

#include <cstdint>
#include <vector>

#include "accrue/run/data/data_samplers.h"
#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue {

/// A permutation of [0, size) with the key (seed, epoch); index -> sample in constant time.
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
  bool split_batches = false;  ///< accelerate: one batch of micro_batch * world is cut into world parts
  bool fill_alone = false;     ///< repeat also applies to a single rank
  bool cyclic = false;         ///< the order of Megatron-LM's cyclic sampler, which drops an epoch's tail
  bool sharding = true;        ///< for a cyclic order
  std::int64_t consumed = 0;   ///< for a cyclic order: samples of all ranks read before; whole batches

  /// L: batches per epoch, equal on all ranks. repeat and empty_micro_steps round up; drop rounds down to full rounds
  /// of batches.
  std::int64_t batches_per_epoch() const;
  /// Returns the samples of a rank's batch. It is shorter than micro_batch at the end of the data, and empty for an
  /// empty micro-step. With repeat a short tail is completed from the start of the epoch's order.
  std::vector<std::int64_t> batch(std::int64_t epoch, std::int64_t batch, std::int64_t rank) const;
  /// For a cyclic order with batches in an epoch: the sampler that batch() makes on each call. It caches the epoch's
  /// order: keep it when reading batches in sequence, and position it with continue_after(consumed_before(...)).
  CyclicSampler sampler(std::int64_t rank) const;
  std::int64_t consumed_before(std::int64_t epoch, std::int64_t batch) const;
  /// Number of samples, from the first, that the epoch has not used before; the others are repeats.
  std::int64_t fresh(std::int64_t batch, std::int64_t rank) const;
  /// Samples that all ranks train on at one batch index; a repeated sample counts each time.
  std::int64_t samples_in_batch(std::int64_t batch) const;
  /// Repeated samples per epoch that fill up ranks.
  std::int64_t repeated_per_epoch() const;
  bool operator==(const SampleOrder&) const = default;
};

}  // namespace accrue
