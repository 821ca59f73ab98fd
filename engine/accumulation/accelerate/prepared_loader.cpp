// SPDX-License-Identifier: Apache-2.0
// Sharing of a loader among ranks. Sharding is a pure function of SampleOrder. Sources of unknown length cost one
// exchange of one number per batch, one batch ahead of the training. So all ranks see the end together.
#include "accrue/accumulation/accelerate/prepared_loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <stdexcept>
#include <string>

namespace accrue::accelerate {

SampleOrder shared_order(const GradientState& state, std::int64_t samples, const LoaderOptions& options) {
  const std::int64_t world = state.world();
  const bool split = state.options().split_batches;
  if (options.already_sharded)
    throw std::invalid_argument(
        "prepare(loader): map_loader() shares its samples itself; leave already_sharded to sources of batches");
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

std::int64_t own_batches(SampleOrder order, std::int64_t rank) {
  const std::int64_t rounds = order.batches_per_epoch();
  if (order.uneven != UnevenRanks::join || rounds == 0) return rounds;
  order.shuffle = false;  // the number does not depend on the order
  return order.batch(0, rounds - 1, rank).empty() ? rounds - 1 : rounds;
}

void refuse_beyond_the_end() {
  throw std::out_of_range(
      "the pass over the loader is over: every batch was handed out; end the loop at end(), or at length(), which is "
      "this rank's own");
}

std::int64_t order_remainder(const SampleOrder& order) {
  return order.samples % (order.micro_batch * order.world);
}

bool some_rank_is_empty(SampleOrder order, std::int64_t batch) {
  if (batch + 1 != order.batches_per_epoch()) return false;
  order.shuffle = false;  // the number does not depend on the order
  return order.batch(0, batch, order.world - 1).empty();
}

SourceShare source_share(const GradientState& state, const LoaderOptions& options, std::int64_t rank, bool cuts,
                         bool copies) {
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("prepare(source): " + why); };
  if (options.batch_size != LoaderOptions{}.batch_size)
    refuse("the source makes its batches itself; leave batch_size out, or give map_loader() the samples");
  if (options.shuffle)
    refuse(
        "the source has an order of its own; shuffle where it is made, from one seed on all ranks, or give "
        "map_loader() the samples");
  if (options.drop_last)
    refuse(
        "the source makes its batches itself; drop its last one there. uneven_ranks = drop leaves out the round "
        "that has no batch for every rank");
  SourceShare share;
  share.rank = rank;
  share.world = state.world();
  share.split = state.options().split_batches;
  const auto wanted = options.uneven_ranks;
  if (options.already_sharded) {
    if (wanted == UnevenRanks::repeat || wanted == UnevenRanks::empty_micro_steps)
      refuse(
          "a source that is sharded already cannot be made even, as no rank knows the others' samples; set "
          "uneven_ranks to join or drop, or leave already_sharded out and give every rank the whole source");
    share.uneven = wanted.value_or(UnevenRanks::join);
    if (share.uneven == UnevenRanks::join && share.world > 1 && !cuts) refuse_to_make_empty();
    return share;
  }
  share.uneven = wanted.value_or(state.options().even_batches ? UnevenRanks::repeat : UnevenRanks::join);
  if (share.uneven == UnevenRanks::repeat && share.world > 1 && !copies)
    refuse("batches that cannot be copied cannot be repeated; set uneven_ranks to join or drop");
  const bool joins = share.uneven == UnevenRanks::join && share.world > 1;
  if ((joins || share.uneven == UnevenRanks::empty_micro_steps) && !cuts) refuse_to_make_empty();
  if (share.split && share.world > 1 && !cuts)
    refuse_to_cut("the batches are not tensors, nor made of such", share.world);
  return share;
}

std::optional<std::int64_t> shared_length(std::optional<std::int64_t> length, const SourceShare& share) {
  const bool drops = share.uneven == UnevenRanks::drop && share.world > 1;
  if (!length || (drops && share.split)) return std::nullopt;
  // Of L batches in rounds of W: rank r has L / W, and one of the L mod W that remain if r is below it.
  if (share.uneven == UnevenRanks::join && !share.split)  // empty batches are not counted
    return *length / share.world + (share.rank < *length % share.world ? 1 : 0);
  // Rounds: L / width, rounded down if a short round is dropped, else up.
  return (*length + (drops ? 0 : share.width() - 1)) / share.width();
}

void refuse_different_sources() {
  throw std::invalid_argument(
      "prepare(source): the ranks' sources do not have the same batches, as one of them ended before the others; give "
      "every rank the whole source, which is shared then, or set already_sharded where each has its own");
}

void refuse_to_cut(const std::string& why, std::int64_t ranks) {
  throw std::invalid_argument("prepare(source): with split_batches every batch is cut in " + std::to_string(ranks) +
                              " equal parts, but " + why +
                              "; make batches that can be cut, specialise BatchRows for them, or do without "
                              "split_batches");
}

void refuse_to_make_empty() {
  throw std::invalid_argument(
      "prepare(source): a rank with fewer batches than the others is handed empty ones (uneven_ranks = join or "
      "empty_micro_steps), but no empty batch can be cut from the source's; make batches of tensors with rows, "
      "specialise BatchRows for them, or set uneven_ranks to repeat or drop");
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
