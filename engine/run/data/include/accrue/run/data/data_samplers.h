// SPDX-License-Identifier: Apache-2.0
// Samples of a data-parallel rank in each batch, from the number of consumed samples alone: resuming needs nothing
// else. The classes implement Megatron-LM's dataloader_type single and cyclic. With the third type, external, the
// caller iterates and no sampler is used.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue {

struct SamplerShape {
  std::int64_t total_samples = 0;
  std::int64_t consumed_samples = 0;  ///< by all ranks, over all epochs
  std::int64_t micro_batch_size = 1;
  std::int64_t data_parallel_rank = 0;
  std::int64_t data_parallel_size = 1;
  /// Samples of one batch over all ranks.
  std::int64_t batch_of_all() const { return micro_batch_size * data_parallel_size; }
};

using SampleBatch = std::vector<std::int64_t>;

/// Sampler that takes the samples once, in the data set's order. Each batch takes the next micro_batch_size *
/// data_parallel_size samples; rank r takes the r-th part.
class SingleSampler {
 public:
  /// Errors: config for numbers out of range, and if all samples are consumed.
  static Result<SingleSampler> create(const SamplerShape& shape, bool drop_last = true);
  /// Returns this rank's next batch; none at the end. Without drop_last the last batch may be short, or empty for a
  /// rank.
  std::optional<SampleBatch> next();
  std::int64_t consumed_samples() const { return shape_.consumed_samples; }

 private:
  SingleSampler(const SamplerShape& shape, bool drop_last) : shape_(shape), drop_last_(drop_last) {}
  SamplerShape shape_;
  bool drop_last_;
};

/// Sampler that takes the samples in a new random order each epoch, endlessly. A tail that does not fill a batch of all
/// ranks is dropped.
class CyclicSampler {
 public:
  /// Returns the numbers 0, ..., size - 1 in the order of an epoch.
  using Permutation = std::function<std::vector<std::int64_t>(std::int64_t size, std::int64_t epoch)>;
  /// torch.randperm(size) with the epoch as seed, as in Megatron-LM.
  static std::vector<std::int64_t> upstream_order(std::int64_t size, std::int64_t epoch);
  /// data_sharding: each rank stays in its own contiguous part of the data; else all ranks share one order. Errors:
  /// config for numbers out of range, fewer samples than a batch, or a start inside a batch.
  static Result<CyclicSampler> create(const SamplerShape& shape, bool data_sharding,
                                      Permutation permutation = upstream_order);
  SampleBatch next();
  /// Continues as if `consumed_samples` had been consumed, a multiple of whole batches. The epoch's order is kept
  /// within an epoch.
  void continue_after(std::int64_t consumed_samples) { shape_.consumed_samples = consumed_samples; }
  std::int64_t consumed_samples() const { return shape_.consumed_samples; }
  std::int64_t epoch() const { return shape_.consumed_samples / active_samples(); }
  /// Samples of an epoch that fit into whole batches of all ranks.
  std::int64_t active_samples() const { return shape_.total_samples - shape_.total_samples % shape_.batch_of_all(); }

 private:
  CyclicSampler(const SamplerShape& shape, bool data_sharding, Permutation permutation)
      : shape_(shape), data_sharding_(data_sharding), permutation_(std::move(permutation)) {}

  SamplerShape shape_;
  bool data_sharding_;
  Permutation permutation_;
  std::int64_t ordered_epoch_ = -1;
  std::vector<std::int64_t> order_;  ///< of ordered_epoch_
};

}  // namespace accrue
