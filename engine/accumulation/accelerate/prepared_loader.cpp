// SPDX-License-Identifier: Apache-2.0
// How ranks share a loader. Sharding is SampleOrder's pure function; streams, whose length nobody may know, cost one
// reduction of one number a batch, made one batch ahead of the training so that all ranks see the end together.
#include "accrue/accumulation/accelerate/prepared_loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <stdexcept>
#include <string>

namespace accrue::accelerate {

SampleOrder shared_order(const GradientState& state, std::int64_t samples, const LoaderOptions& options) {
  const std::int64_t world = state.world();
  const bool split = state.options().split_batches;
  if (options.batch_size < 1)
    throw std::invalid_argument("prepare(loader): batch_size is " + std::to_string(options.batch_size) +
                                "; give 1 or more");
  if (split && options.batch_size % world != 0)
    throw std::invalid_argument("prepare(loader): with split_batches a batch of " + std::to_string(options.batch_size) +
                                " cannot be cut in " + std::to_string(world) + " equal parts; give a multiple of " +
                                std::to_string(world));
  SampleOrder order;
  order.micro_batch = split ? options.batch_size / world : options.batch_size;
  order.world = world;
  order.samples = options.drop_last ? samples - samples % (order.micro_batch * world) : samples;
  order.shuffle = options.shuffle;
  order.seed = state.options().seed;
  order.uneven = options.uneven_ranks.value_or(state.options().even_batches ? UnevenRanks::repeat : UnevenRanks::join);
  order.split_batches = split;
  return order;
}

std::int64_t order_remainder(const SampleOrder& order) {
  return order.samples % (order.micro_batch * order.world);
}

bool a_rank_joins(SampleOrder order, std::int64_t batch) {
  if (order.uneven != UnevenRanks::join || batch >= order.batches_per_epoch()) return false;
  order.shuffle = false;  // how many there are does not depend on which
  return order.batch(0, batch, order.world - 1).empty();
}

bool lengths_agree(std::optional<std::int64_t> length, Communicator& axis) {
  if (axis.size() == 1) return true;
  const at::Tensor mine = at::full({1}, length.value_or(-1), at::kLong);
  at::Tensor all = at::empty({axis.size(), 1}, at::kLong);
  axis.all_gather(all, mine);
  const auto* lengths = all.const_data_ptr<std::int64_t>();
  for (std::int64_t rank = 0; rank < axis.size(); ++rank)
    if (lengths[rank] < 0 || lengths[rank] != lengths[0]) return false;
  return true;
}

std::int64_t ranks_that(bool yes, Communicator& axis) {
  at::Tensor count = at::full({1}, yes ? 1.0 : 0.0, at::kDouble);
  axis.all_reduce(count);
  return static_cast<std::int64_t>(count.item<double>());
}

}  // namespace accrue::accelerate
