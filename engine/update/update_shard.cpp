// SPDX-License-Identifier: Apache-2.0
#include "update/update_shard.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <ranges>

#include "optim/flat_base.h"

namespace accrue {
UpdateShard::UpdateShard(const FlatLayout& layout, Communicator& axis) : axis_(axis) {
  const auto owned = owned_ranges(layout, axis.rank(), axis.size());
  for (std::size_t bucket = 0; bucket < owned.size(); ++bucket) {
    pieces_.push_back({layout.buckets[bucket], owned[bucket], numel_});
    numel_ += owned[bucket].size;
  }
  for (std::size_t i = 0; i < layout.parameters.size(); ++i)
    for (const Piece& piece : pieces_)
      if (const auto part = common_part(layout.parameters[i], piece.flat))
        parts_.push_back({.parameter = i,
                          .of_parameter = {part->offset - layout.parameters[i].offset, part->size},
                          .packed = {piece.packed + part->offset - piece.flat.offset, part->size}});
  std::ranges::sort(parts_, {}, [](const Part& part) { return part.packed.offset; });
}

std::vector<OptimizerSegment> UpdateShard::segments(const std::vector<OptimizerSegment>& of_parameters) const {
  std::vector<OptimizerSegment> segments;
  for (const Part& part : parts_) {
    segments.push_back(of_parameters[part.parameter]);
    segments.back().range = part.packed;
  }
  return segments;
}

/// Calls use(piece, range in the flat space) for this rank's share of ascending ranges.
template <typename Use>
void UpdateShard::for_common(const std::vector<FlatRange>& flat, const Use& use) const {
  for (const FlatRange& range : flat)
    for (const Piece& piece : pieces_)
      if (const auto part = common_part(range, piece.flat)) use(piece, *part);
}

std::vector<FlatRange> UpdateShard::owned(const std::vector<FlatRange>& flat) const {
  std::vector<FlatRange> ranges;
  for_common(flat, [&](const Piece&, const FlatRange& part) { ranges.push_back(part); });
  return ranges;
}

std::vector<FlatRange> UpdateShard::packed(const std::vector<FlatRange>& flat) const {
  std::vector<FlatRange> ranges;
  for_common(flat, [&](const Piece& piece, const FlatRange& part) {
    ranges.push_back({piece.packed + part.offset - piece.flat.offset, part.size});
  });
  return ranges;
}

at::Tensor UpdateShard::pack(const at::Tensor& flat, at::ScalarType type) const {
  at::Tensor packed = at::empty({numel_}, flat.options().dtype(type));
  for (const Piece& piece : pieces_)
    packed.narrow(0, piece.packed, piece.flat.size).copy_(flat.narrow(0, piece.flat.offset, piece.flat.size));
  return packed;
}

void UpdateShard::unpack(const at::Tensor& packed, const at::Tensor& flat) const {
  for (const Piece& piece : pieces_)
    flat.narrow(0, piece.flat.offset, piece.flat.size).copy_(packed.narrow(0, piece.packed, piece.flat.size));
}

void UpdateShard::gather(const at::Tensor& flat, bool overlap) {
  for (const Piece& piece : std::ranges::reverse_view(pieces_)) {
    const at::Tensor own = flat.narrow(0, piece.flat.offset, piece.flat.size);
    at::Tensor bucket = flat.narrow(0, piece.bucket.offset, piece.bucket.size);
    if (overlap)
      gathers_.emplace_back(piece.bucket, axis_.start_all_gather(bucket, own, CollectivePurpose::parameters));
    else
      axis_.all_gather(bucket, own, CollectivePurpose::parameters);
  }
}

void UpdateShard::await(const FlatRange& flat) {
  for (auto& [bucket, gather] : gathers_)
    if (common_part(flat, bucket)) gather.wait();
}

void UpdateShard::await_all() {
  for (auto& [bucket, gather] : gathers_) gather.wait();
  gathers_.clear();
}

}  // namespace accrue
