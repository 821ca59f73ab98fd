// SPDX-License-Identifier: Apache-2.0
// Parameters are laid out in one flat space from the last to the first, the order in which backward finishes them. So a
// bucket, a range of this space, is complete as early as possible. Offsets are multiples of 16 elements (a cache line
// of float32), which costs at most 15 elements per parameter. Buckets are cut anywhere and have equal size, so a large
// embedding does not become one large bucket.
#include "accrue/run/cost/shard_layout.h"

#include <algorithm>

#include "parameter_totals.h"

namespace accrue {

namespace {

constexpr std::int64_t alignment = 16;
/// Above this number buckets become larger instead, because a plan lists them for any model and bucket size.
constexpr std::int64_t most_buckets = 1 << 16;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

/// Elements of each bucket except the last, which may be shorter: a multiple of `step`. With n buckets of at most
/// bucket_bytes that is numel / n rounded up, not bucket_bytes itself, so that the last bucket is no sliver.
std::int64_t bucket_size(std::int64_t numel, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                         std::int64_t step) {
  const std::int64_t largest = std::max(step, bucket_bytes / std::max<std::int64_t>(bytes_per_element, 1));
  const std::int64_t count = std::clamp<std::int64_t>(divided_up(numel, largest), 1, most_buckets);
  return std::max(step, rounded_up(divided_up(numel, count), step));
}

}  // namespace

FlatLayout flat_layout(std::span<const std::int64_t> numels, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                       std::int64_t shards, std::optional<std::size_t> alone) {
  FlatLayout layout;
  layout.parameters.resize(numels.size());
  const std::int64_t step = alignment * shards;
  std::int64_t cut = 0;  // end of the buckets so far
  const auto close = [&] {
    layout.numel = rounded_up(layout.numel, step);
    const std::int64_t size = bucket_size(layout.numel - cut, bytes_per_element, bucket_bytes, step);
    for (; cut < layout.numel; cut += layout.buckets.back().size)
      layout.buckets.push_back({cut, std::min(size, layout.numel - cut)});
  };
  for (std::size_t i = numels.size(); i-- > 0;) {
    if (i == alone) close();
    layout.parameters[i] = {layout.numel, numels[i]};
    layout.numel += padded_numel(numels[i]);
    if (i == alone) close();
  }
  close();
  return layout;
}

std::vector<FlatRange> owned_ranges(const FlatLayout& layout, std::int64_t rank, std::int64_t world) {
  std::vector<FlatRange> owned;
  for (const FlatRange& bucket : layout.buckets) {
    // Exact: a bucket is a multiple of 16 x shards.
    const std::int64_t part = bucket.size / world;
    owned.push_back({bucket.offset + rank * part, part});
  }
  return owned;
}

std::int64_t bucket_count(std::int64_t padded_numel, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                          std::int64_t shards) {
  const std::int64_t step = alignment * shards, numel = rounded_up(padded_numel, step);
  return divided_up(numel, bucket_size(numel, bytes_per_element, bucket_bytes, step));
}

std::int64_t padded_numel(std::int64_t numel) {
  return rounded_up(numel, alignment);
}

FlatRange shard_range(std::int64_t numel, std::int64_t rank, std::int64_t world) {
  const std::int64_t part = divided_up(numel, world);
  const std::int64_t begin = std::min(numel, part * rank);
  return {begin, std::min(part, numel - begin)};
}

std::int64_t all_reduce_wire_bytes(std::int64_t bytes, std::int64_t n) {
  if (n <= 1) return 0;
  // 2 (n - 1) / n * bytes, rounded up, in two parts so that the product cannot overflow.
  const std::int64_t whole = bytes / n;
  return 2 * (n - 1) * whole + divided_up(2 * (n - 1) * (bytes % n), n);
}

}  // namespace accrue
