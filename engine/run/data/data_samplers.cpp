// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/data_samplers.h"

#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/data/torch_random.h"

namespace accrue {
namespace {

Result<void> check_sampler(const SamplerShape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const auto refused = [](std::string what) { return fail(ErrorCode::config, std::move(what)); };
  if (shape.total_samples < 1) return refused("there is no sample to consume");
  if (shape.consumed_samples < 0) return refused(fmt::format("{} samples cannot be consumed", shape.consumed_samples));
  if (shape.micro_batch_size < 1 || shape.micro_batch_size > most)
    return refused(fmt::format("a micro-batch cannot have {} samples", shape.micro_batch_size));
  if (shape.data_parallel_size < 1 || shape.data_parallel_size > most / 2 || shape.data_parallel_rank < 0 ||
      shape.data_parallel_rank >= shape.data_parallel_size)
    return refused(
        fmt::format("there is no data-parallel rank {} of {}", shape.data_parallel_rank, shape.data_parallel_size));
  return {};
}

}  // namespace

Result<SingleSampler> SingleSampler::create(const SamplerShape& shape, bool drop_last) {
  if (auto checked = check_sampler(shape); !checked) return tl::unexpected(checked.error());
  if (shape.consumed_samples >= shape.total_samples)
    return fail(ErrorCode::config,
                fmt::format("no samples are left: {} of {} are consumed", shape.consumed_samples, shape.total_samples));
  return SingleSampler(shape, drop_last);
}

std::optional<SampleBatch> SingleSampler::next() {
  const std::int64_t left = shape_.total_samples - shape_.consumed_samples, all = shape_.batch_of_all();
  if (left <= 0 || (drop_last_ && left < all)) return std::nullopt;
  const std::int64_t size = std::min(left, all), rank = shape_.data_parallel_rank, part = shape_.micro_batch_size;
  SampleBatch batch;
  for (std::int64_t i = std::min(rank * part, size); i < std::min((rank + 1) * part, size); ++i)
    batch.push_back(shape_.consumed_samples + i);
  shape_.consumed_samples += size;
  return batch;
}

std::vector<std::int64_t> CyclicSampler::upstream_order(std::int64_t size, std::int64_t epoch) {
  return torch_randperm(size, static_cast<std::uint64_t>(epoch));
}

Result<CyclicSampler> CyclicSampler::create(const SamplerShape& shape, bool data_sharding, Permutation permutation) {
  if (auto checked = check_sampler(shape); !checked) return tl::unexpected(checked.error());
  if (shape.total_samples < shape.batch_of_all())
    return fail(ErrorCode::config,
                fmt::format("{} samples do not fill one batch of {}", shape.total_samples, shape.batch_of_all()));
  if (shape.consumed_samples % shape.batch_of_all() != 0)
    return fail(
        ErrorCode::config,
        fmt::format("{} consumed samples are no whole batches of {}", shape.consumed_samples, shape.batch_of_all()), {},
        "Resume with the batch size of the run");
  return CyclicSampler(shape, data_sharding, std::move(permutation));
}

SampleBatch CyclicSampler::next() {
  const std::int64_t part = shape_.micro_batch_size, ranks = shape_.data_parallel_size;
  const std::int64_t bucket = active_samples() / ranks;
  if (epoch() != ordered_epoch_) {
    ordered_epoch_ = epoch();
    order_ = permutation_(data_sharding_ ? bucket : shape_.total_samples / part * part, ordered_epoch_);
  }
  const std::int64_t done = shape_.consumed_samples % active_samples() / ranks;  // of this rank, in this epoch
  SampleBatch batch;
  for (std::int64_t i = done; i < done + part; ++i)
    batch.push_back(data_sharding_ ? shape_.data_parallel_rank * bucket + order_.at(static_cast<std::size_t>(i))
                                   : order_.at(static_cast<std::size_t>(i * ranks + shape_.data_parallel_rank)));
  shape_.consumed_samples += shape_.batch_of_all();
  return batch;
}

}  // namespace accrue
