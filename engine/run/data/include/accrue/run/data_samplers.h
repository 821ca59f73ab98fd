// SPDX-License-Identifier: Apache-2.0
// Which samples a data-parallel rank takes in each batch, from the number of samples consumed: nothing else is needed
// to resume. The types are those of Megatron-LM's dataloader_type: single, and cyclic. With the third, external, the
// caller iterates and no sampler is asked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

struct SamplerShape {
  std::int64_t total_samples = 0;
  std::int64_t consumed_samples = 0;  ///< by all ranks, over all epochs
  std::int64_t micro_batch_size = 1;
  std::int64_t data_parallel_rank = 0;
  std::int64_t data_parallel_size = 1;
  /// Samples of one batch of all ranks.
  std::int64_t batch_of_all() const { return micro_batch_size * data_parallel_size; }
};

using SampleBatch = std::vector<std::int64_t>;

/// In the data set's order, once. Each batch takes the next micro_batch_size * data_parallel_size samples, rank r the
/// r-th part of them.
class SingleSampler {
 public:
  /// Errors: config for numbers out of range, and where nothing is left to consume.
  static Result<SingleSampler> create(const SamplerShape& shape, bool drop_last = true);
  /// This rank's next batch; none at the end. Without drop_last the last batch may be short, or empty for a rank.
  std::optional<SampleBatch> next();
  std::int64_t consumed_samples() const { return shape_.consumed_samples; }

 private:
  SingleSampler(const SamplerShape& shape, bool drop_last) : shape_(shape), drop_last_(drop_last) {}
  SamplerShape shape_;
  bool drop_last_;
};

/// In a new random order each epoch, without end; a tail that fills no batch of all ranks is dropped.
class CyclicSampler {
 public:
  /// The numbers 0, ..., size - 1 in the order of an epoch.
  using Permutation = std::function<std::vector<std::int64_t>(std::int64_t size, std::int64_t epoch)>;
  /// torch.randperm(size) with the epoch as seed, as Megatron-LM takes it.
  static std::vector<std::int64_t> upstream_order(std::int64_t size, std::int64_t epoch);
  /// data_sharding: each rank keeps to its own contiguous part of the data; else the ranks take turns in one order.
  /// Errors: config for numbers out of range, fewer samples than a batch, or a start within a batch.
  static Result<CyclicSampler> create(const SamplerShape& shape, bool data_sharding,
                                      Permutation permutation = upstream_order);
  SampleBatch next();
  /// As if so many had been consumed: whole batches. Within an epoch its order is kept.
  void continue_after(std::int64_t consumed_samples) { shape_.consumed_samples = consumed_samples; }
  std::int64_t consumed_samples() const { return shape_.consumed_samples; }
  std::int64_t epoch() const { return shape_.consumed_samples / active_samples(); }
  /// Of an epoch: what whole batches of all ranks take.
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
