// SPDX-License-Identifier: Apache-2.0
// The permutation is a balanced Feistel network over the smallest even number of bits that holds the size. An index
// outside the size passes through again until it is inside (at most about four times on average). It is a bijection for
// any round function, so no sample is lost or repeated in an epoch.
#include "accrue/run/facts/sample_order.h"

#include <algorithm>
#include <bit>

#include "accrue/run/base/mix64.h"

namespace accrue {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

SamplePermutation::SamplePermutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) : size_(size) {
  const auto bits =
      static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(size - 1, 1))));
  half_bits_ = (bits + 1) / 2;
  std::uint64_t key = mix64(seed) ^ mix64(~epoch);
  for (std::uint64_t& round_key : keys_) round_key = key = mix64(key);
}

std::int64_t SamplePermutation::operator()(std::int64_t index) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix64(right ^ key) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

std::int64_t SampleOrder::batches_per_epoch() const {
  if (samples <= 0) return 0;
  if (cyclic) return samples / (micro_batch * world);
  if (split_batches)
    return uneven == UnevenRanks::drop ? samples / (micro_batch * world) : ceil_div(samples, micro_batch * world);
  if (uneven == UnevenRanks::drop && world > 1) return samples / micro_batch / world;
  return ceil_div(ceil_div(samples, micro_batch), world);
}

namespace {

/// First position in the epoch's order of a rank's batch, before repeats wrap and the end of the data cuts.
std::int64_t first_position(const SampleOrder& order, std::int64_t batch, std::int64_t rank) {
  return (batch * order.world + rank) * order.micro_batch;
}

/// A single rank has no others to match, so its short tail stays short.
bool repeats(const SampleOrder& order) {
  return !order.cyclic && order.uneven == UnevenRanks::repeat && (order.world > 1 || order.fill_alone);
}

std::int64_t batch_size(const SampleOrder& order, std::int64_t batch, std::int64_t rank) {
  if (order.cyclic || repeats(order)) return order.micro_batch;
  return std::clamp<std::int64_t>(order.samples - first_position(order, batch, rank), 0, order.micro_batch);
}

}  // namespace

CyclicSampler SampleOrder::sampler(std::int64_t rank) const {
  return CyclicSampler::create({.total_samples = samples,
                                .consumed_samples = consumed,
                                .micro_batch_size = micro_batch,
                                .data_parallel_rank = rank,
                                .data_parallel_size = world},
                               sharding)
      .value();
}

std::int64_t SampleOrder::consumed_before(std::int64_t epoch, std::int64_t batch) const {
  return consumed + (epoch * batches_per_epoch() + batch) * micro_batch * world;
}

std::vector<std::int64_t> SampleOrder::batch(std::int64_t epoch, std::int64_t batch, std::int64_t rank) const {
  if (cyclic) {
    CyclicSampler samples_of_rank = sampler(rank);
    samples_of_rank.continue_after(consumed_before(epoch, batch));
    return samples_of_rank.next();
  }
  const std::int64_t begin = first_position(*this, batch, rank);
  const std::int64_t count = batch_size(*this, batch, rank);
  const SamplePermutation permute(samples, seed, static_cast<std::uint64_t>(epoch));
  std::vector<std::int64_t> indices;
  indices.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = (begin + i) % samples;
    indices.push_back(shuffle ? permute(position) : position);
  }
  return indices;
}

std::int64_t SampleOrder::fresh(std::int64_t batch, std::int64_t rank) const {
  if (cyclic) return micro_batch;
  return std::clamp<std::int64_t>(samples - first_position(*this, batch, rank), 0, micro_batch);
}

std::int64_t SampleOrder::samples_in_batch(std::int64_t batch) const {
  std::int64_t sum = 0;
  for (std::int64_t rank = 0; rank < world; ++rank) sum += batch_size(*this, batch, rank);
  return sum;
}

std::int64_t SampleOrder::repeated_per_epoch() const {
  if (!repeats(*this)) return 0;
  return batches_per_epoch() * world * micro_batch - samples;
}

}  // namespace accrue
